// Encoding and decoding recordings: time an event, and bytes an event (counter bytes_per_event).
//
// The stream imitates a training loop: each step makes the same allocations and frees with the same stacks, at times
// that vary; now and then a sequence is longer, and everything in that step has another size. Its addresses come from a
// small best-fit allocator with splitting, since where blocks land decides what the addresses cost.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "trace/reader.h"
#include "trace/writer.h"

namespace {

using namespace tidemark;

constexpr Device kGpu = {DeviceType::cuda, 0};
constexpr std::uint32_t kStacks = 90;
constexpr int kLayers = 12;
constexpr int kBlocksOfALayer = 160;

/// Best fit, lowest address first, in one segment that grows; free neighbours are merged. Like PyTorch's, without
/// streams.
class BestFit {
 public:
  std::uint64_t allocate(std::uint64_t size) {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) {
      const std::uint64_t address = end_;
      end_ += size;
      return address;
    }
    const auto [have, address] = *found;
    remove(address, have);
    if (have > size) add(address + size, have - size);
    return address;
  }
  void free(std::uint64_t address, std::uint64_t size) {
    auto after = by_address_.lower_bound(address);
    if (after != by_address_.end() && after->first == address + size) {
      const auto [other, other_size] = *after;
      remove(other, other_size);
      size += other_size;
    }
    auto before = by_address_.lower_bound(address);
    if (before != by_address_.begin()) {
      --before;
      const auto [other, other_size] = *before;
      if (other + other_size == address) {
        remove(other, other_size);
        address = other;
        size += other_size;
      }
    }
    add(address, size);
  }
  [[nodiscard]] std::uint64_t reserved() const {
    return ((end_ - kStart) + (20U << 20) - 1) / (20U << 20) * (20U << 20);
  }

 private:
  static constexpr std::uint64_t kStart = 0x7f00'0000'0000;

  void add(std::uint64_t address, std::uint64_t size) {
    by_address_[address] = size;
    by_size_.insert({size, address});
  }
  void remove(std::uint64_t address, std::uint64_t size) {
    by_address_.erase(address);
    by_size_.erase({size, address});
  }

  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  std::map<std::uint64_t, std::uint64_t> by_address_;
  std::uint64_t end_ = kStart;
};

class TrainingLoop {
 public:
  std::vector<Event> run(std::size_t count) {
    while (events_.size() < count) step();
    events_.resize(count);
    return std::move(events_);
  }

 private:
  struct Block {
    std::uint64_t address;
    std::uint64_t size;
  };

  void step() {
    const std::uint64_t length = random_() % 20 == 0 ? 640 : 512;  // tokens
    std::mt19937 same_each_step(7);
    std::vector<Block> saved;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int n = 0; n < kBlocksOfALayer; ++n) {
        const auto stack = static_cast<std::uint32_t>(same_each_step() % kStacks);
        const Block block = allocate(512 * (1 + same_each_step() % 64) * (n % 3 == 0 ? length : 1), stack);
        if (same_each_step() % 4 == 0) {
          saved.push_back(block);
        } else {
          free(block);
        }
      }
    }
    // Backward: saved blocks die in reverse order, each with a short-lived gradient.
    while (!saved.empty()) {
      const Block gradient = allocate(saved.back().size, kStacks - 1);
      free(saved.back());
      saved.pop_back();
      free(gradient);
    }
  }

  Block allocate(std::uint64_t size, std::uint32_t stack) {
    const Block block{memory_.allocate(size), size};
    allocated_ += size;
    Event event = make(EventKind::allocate, block);
    event.stack = {stack};
    events_.push_back(event);
    return block;
  }
  void free(const Block& block) {
    memory_.free(block.address, block.size);
    allocated_ -= block.size;
    events_.push_back(make(EventKind::free, block));
  }
  Event make(EventKind kind, const Block& block) {
    // Gaps as between kernel launches: some 2 to 20 µs, rarely longer.
    std::lognormal_distribution<double> gap(8.7, 0.7);
    time_ += static_cast<std::uint64_t>(gap(random_));
    Event event;
    event.kind = kind;
    event.time_ns = time_;
    event.address = block.address;
    event.size = block.size;
    event.device = kGpu;
    event.thread = {0};
    event.has_totals = true;
    event.total_allocated = allocated_;
    event.total_reserved = memory_.reserved();
    return event;
  }

  std::mt19937 random_{1};
  BestFit memory_;
  std::vector<Event> events_;
  std::uint64_t time_ = 0;
  std::uint64_t allocated_ = 0;
};

const std::vector<Event>& stream() {
  static const std::vector<Event> events = TrainingLoop().run(1'000'000);
  return events;
}

std::unique_ptr<TraceWriter> open_writer(std::unique_ptr<Sink> sink) {
  auto created = TraceWriter::create(std::move(sink), {});
  if (!created.ok()) std::abort();
  std::unique_ptr<TraceWriter> writer = std::move(created).value();
  StackId parent;
  for (std::uint32_t n = 0; n < kStacks; ++n) {
    Location location;
    location.file = writer->string("model.py");
    location.line = n;
    parent = writer->stack(n % 10 == 0 ? StackId{} : parent, writer->location(location));
  }
  writer->thread({1, "python"});
  return writer;
}

std::vector<std::byte> recording() {
  std::vector<std::byte> bytes;
  const auto writer = open_writer(make_memory_sink(&bytes));
  for (const Event& event : stream()) {
    if (!writer->event(event).ok()) std::abort();
  }
  if (!writer->finish({}).ok()) std::abort();
  return bytes;
}

void count_events(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(stream().size()));
}

void trace_encode(benchmark::State& state) {
  std::uint64_t bytes = 0;
  stream();
  for (auto _ : state) {
    const auto writer = open_writer(make_null_sink());
    for (const Event& event : stream()) {
      if (!writer->event(event).ok()) std::abort();
    }
    if (!writer->finish({}).ok()) std::abort();
    bytes = writer->bytes_written();
  }
  count_events(state);
  state.counters["bytes_per_event"] = static_cast<double>(bytes) / static_cast<double>(stream().size());
}
BENCHMARK(trace_encode)->Unit(benchmark::kMillisecond);

void trace_decode(benchmark::State& state) {
  const std::vector<std::byte> bytes = recording();
  std::vector<Event> batch;
  for (auto _ : state) {
    const auto reader = TraceReader::from_memory(bytes, "memory");
    if (!reader.ok()) std::abort();
    std::size_t events = 0;
    while (*(*reader)->next(batch)) {
      events += batch.size();
      benchmark::DoNotOptimize(batch.data());
    }
    if (events != stream().size()) std::abort();
  }
  count_events(state);
  state.counters["bytes_per_event"] = static_cast<double>(bytes.size()) / static_cast<double>(stream().size());
}
BENCHMARK(trace_decode)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
