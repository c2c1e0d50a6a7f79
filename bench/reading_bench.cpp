// Speed of reading recordings: everything that `tidemark summary` does, the full store of the other commands, and the
// owner of each block.
//
// The recording looks like training on one GPU: a few hundred blocks stay, each step allocates activations in the
// forward pass and frees them in the backward pass, from some 200 different stacks of 30 frames.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/usage/summary.h"
#include "report/common/terminal.h"
#include "report/common/text.h"
#include "store/store.h"
#include "store/symbols.h"
#include "trace/writer.h"

namespace tidemark {
namespace {

constexpr std::size_t kStacks = 200;
constexpr std::size_t kFrames = 30;
constexpr std::size_t kParameters = 400;
constexpr std::size_t kActivations = 2000;
constexpr std::size_t kSteps = 1000;
constexpr std::uint64_t kEvents = kParameters + kSteps * kActivations * 2;

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}

// A module for each stack if blocks have owners.
std::vector<StackId> make_stacks(TraceWriter& writer, bool attributed) {
  std::vector<StackId> stacks;
  NnModuleId root;
  for (std::size_t stack = 0; stack < kStacks; ++stack) {
    StackId node;
    for (std::size_t frame = 0; frame < kFrames; ++frame) {
      Location location;
      location.file = writer.string("/home/user/model/layers.py");
      location.function = writer.string("function" + std::to_string(frame));
      location.line = static_cast<std::uint32_t>(frame < kFrames / 2 ? frame + 1 : stack * 100 + frame);
      if (attributed && frame == kFrames / 2) {
        location.nn_module = writer.nn_module({0x1000 * (stack + 1)});
        if (!root.valid()) root = location.nn_module;
        const std::string path = stack == 0 ? "" : "layers." + std::to_string(stack) + ".mlp";
        writer.nn_module_name({location.nn_module, root, writer.string(path), writer.string("model.MLP")});
      }
      node = writer.stack(node, writer.location(location));
    }
    stacks.push_back(node);
  }
  return stacks;
}

class Writer {
 public:
  Writer(const std::string& path, bool attributed) {
    auto sink = open_file_sink(path, true);
    if (!sink) give_up(sink.error());
    auto writer = TraceWriter::create(std::move(*sink), ProcessInfo{});
    if (!writer) give_up(writer.error());
    writer_ = std::move(*writer);
    stacks_ = make_stacks(*writer_, attributed);
    event_.thread = writer_->thread({4711, "python"});
    if (attributed) node_ = writer_->autograd_node({writer_->string("MmBackward0"), event_.thread});
    event_.device = {DeviceType::cuda, 0};
    event_.has_totals = true;
    event_.total_reserved = std::uint64_t{8} << 30;
  }

  void allocate(std::uint64_t address, std::uint64_t size) {
    event_.kind = EventKind::allocate;
    event_.address = address;
    event_.size = size;
    event_.stack = stacks_[random_() % kStacks];
    if (node_.valid()) number_node();
    event_.total_allocated += size;
    write();
  }

  void free(std::uint64_t address, std::uint64_t size) {
    event_.kind = EventKind::free;
    event_.address = address;
    event_.size = size;
    event_.stack = {};
    event_.total_allocated -= size;
    write();
  }

  void finish() {
    if (auto done = writer_->finish({event_.time_ns, true}); !done) give_up(done.error());
  }

 private:
  // Every fourth block belongs to a backward pass.
  void number_node() {
    event_.sequence = ++sequence_;
    event_.node = sequence_ % 4 == 0 ? node_ : AutogradNodeId{};
    event_.node_sequence = sequence_ % 4 == 0 ? sequence_ - 2 : 0;
  }

  void write() {
    event_.time_ns += 1000 + random_() % 4000;
    if (auto done = writer_->event(event_); !done) give_up(done.error());
  }

  std::unique_ptr<TraceWriter> writer_;
  std::vector<StackId> stacks_;
  Event event_;
  AutogradNodeId node_;
  std::uint64_t sequence_ = 0;
  std::mt19937 random_{1};
};

std::string write_recording(bool attributed) {
  const std::string file = "reading_bench." + std::to_string(getpid()) + (attributed ? ".attributed" : "");
  std::string name = (std::filesystem::temp_directory_path() / file).string();
  Writer writer(name, attributed);
  std::uint64_t address = 1 << 20;
  for (std::size_t index = 0; index < kParameters; ++index) writer.allocate(address += 1 << 22, 512 * (1 + index));
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (std::size_t index = 0; index < kActivations; ++index)
      writer.allocate(address + ((index + 1) << 22), 512 * (1 + index % 300));
    for (std::size_t index = kActivations; index-- > 0;)
      writer.free(address + ((index + 1) << 22), 512 * (1 + index % 300));
  }
  writer.finish();
  return name;
}

// Written once for all benchmarks; removed at exit.
const std::string& recording() {
  static const std::string path = write_recording(false);
  return path;
}

const std::string& attributed_recording() {
  static const std::string path = write_recording(true);
  return path;
}

void count_events(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kEvents));
}

void whole_summary(benchmark::State& state) {
  const std::string& path = recording();
  for ([[maybe_unused]] auto _ : state) {
    const auto overview = load_overview(path);
    if (!overview) give_up(overview.error());
    Symbols symbols(overview->definitions);
    const auto summary = analyze_summary(*overview, symbols, {});
    benchmark::DoNotOptimize(to_text(*summary, Terminal()));
  }
  count_events(state);
}
BENCHMARK(whole_summary)->Unit(benchmark::kMillisecond);

void full_store(benchmark::State& state) {
  const std::string& path = recording();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(load_store(path));
  count_events(state);
}
BENCHMARK(full_store)->Unit(benchmark::kMillisecond);

void full_store_with_owners(benchmark::State& state) {
  const std::string& path = attributed_recording();
  for ([[maybe_unused]] auto _ : state) {
    const auto store = load_store(path);
    if (!store) give_up(store.error());
    benchmark::DoNotOptimize(attribute_blocks(*store));
  }
  count_events(state);
}
BENCHMARK(full_store_with_owners)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove(tidemark::recording());
  std::filesystem::remove(tidemark::attributed_recording());
  return 0;
}
