#include "store/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/simulated_gpu.h"
#include "store/store.h"
#include "store/tally.h"
#include "store/window_time.h"
#include "trace/reader.h"
#include "trace/sample_codec.h"

namespace tidemark {

void StoreBuilder::add(const Event& event) {
  const auto change = static_cast<std::uint32_t>(store_.live_changes.size());
  if (change == Blocks::kAlive - 1) full_ = true;
  if (full_) return;
  const Tally::Effect effect = tally_.add(event);
  Blocks& blocks = store_.blocks;
  if (effect.kind == Tally::Effect::Kind::birth) {
    const auto block = static_cast<std::uint32_t>(blocks.count());
    blocks.birth_change.push_back(change);
    blocks.death_change.push_back(Blocks::kAlive);
    blocks.address.push_back(event.address);
    blocks.size.push_back(event.size);
    blocks.stack.push_back(event.stack);
    blocks.thread.push_back(event.thread);
    blocks.device.push_back(effect.device);
    add_attribution(event);
    if (event.slot.value >= block_of_slot_.size())
      block_of_slot_.resize(std::size_t{event.slot.value} + 1, Blocks::kAlive);
    block_of_slot_[event.slot.value] = block;
    store_.live_changes.push_back({effect.time_ns, BlockId{block}, true});
  } else if (effect.kind == Tally::Effect::Kind::death) {
    const std::uint32_t block = block_of_slot_[event.slot.value];
    blocks.death_change[block] = change;
    store_.live_changes.push_back({effect.time_ns, BlockId{block}, false});
  }
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add(const Event& event, const BlockDetails& details) {
  add(event);
  Blocks& blocks = store_.blocks;
  if (blocks.requested.size() == blocks.count()) return;
  blocks.requested.push_back(details.requested);
  blocks.stream.push_back(details.stream);
  blocks.pool.push_back(details.pool);
  add_metadata(event.slot, details.metadata);
}

void StoreBuilder::add_attribution(const Event& event) {
  Blocks& blocks = store_.blocks;
  if (blocks.sequence.empty() && event.sequence == 0 && !event.node.valid()) return;
  const std::size_t before = blocks.count() - 1;  // the event's block is the last
  if (blocks.sequence.empty() && before > 0) {
    blocks.node.resize(before);
    blocks.node_sequence.resize(before);
    blocks.sequence.resize(before);
  }
  blocks.node.push_back(event.node);
  blocks.node_sequence.push_back(event.node_sequence);
  blocks.sequence.push_back(event.sequence);
}

void StoreBuilder::begin() {
  tally_.begin();
  store_.segment_changes_before = store_.segment_changes.size();
}

void StoreBuilder::add_out_of_memory(const Event& event, OutOfMemoryDetails details) {
  if (full_) return;
  details.segment_changes = store_.segment_changes.size();
  const Tally::Effect effect = tally_.add_out_of_memory(event, details);
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals) {
  if (full_) return;
  const Tally::Effect effect = tally_.add_totals(device, time_ns, totals);
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add_segment_change(Device device, std::uint64_t time_ns, SegmentChange change) {
  const auto index = tally_.find_device(device);
  if (full_ || !index) return;
  change.time_ns = std::max(time_ns, tally_.now_ns());
  change.change_count = store_.live_changes.size();
  change.device = *index;
  store_.segment_changes.push_back(change);
}

void StoreBuilder::add_sample(const SampleRecord& record) {
  store_.samples.add(record);
}

void StoreBuilder::defer_free(SlotId slot) {
  if (full_) return;
  pending_of_slot_[slot.value] = store_.pending_frees.size();
  store_.pending_frees.push_back({BlockId{block_of_slot_[slot.value]}});
}

void StoreBuilder::add_metadata(SlotId slot, StringId text) {
  if (full_ || !text.valid() || slot.value >= block_of_slot_.size()) return;
  const BlockId block{block_of_slot_[slot.value]};
  if (block.valid()) store_.blocks.metadata.push_back({block, text});
}

void StoreBuilder::complete(std::uint64_t time_ns, SlotId slot) {
  const auto found = pending_of_slot_.find(slot.value);
  if (full_ || found == pending_of_slot_.end()) return;
  PendingFree& pending = store_.pending_frees[found->second];
  pending.until_ns = std::max(time_ns, tally_.now_ns());
  pending.until_change_count = store_.live_changes.size();
  pending_of_slot_.erase(found);
}

void StoreBuilder::note_change(const Tally::Effect& effect) {
  store_.totals_changes.push_back({effect.time_ns, store_.live_changes.size(), effect.kind != Tally::Effect::Kind::none,
                                   tally_.unrecorded(effect.device), tally_.reserved(effect.device),
                                   tally_.pending(effect.device), effect.device});
}

void StoreBuilder::reserve(std::size_t events) {
  Blocks& blocks = store_.blocks;
  const std::size_t most_blocks = events / 2 + 1;  // the others are frees
  blocks.birth_change.reserve(most_blocks);
  blocks.death_change.reserve(most_blocks);
  blocks.address.reserve(most_blocks);
  blocks.size.reserve(most_blocks);
  blocks.stack.reserve(most_blocks);
  blocks.thread.reserve(most_blocks);
  blocks.device.reserve(most_blocks);
  blocks.requested.reserve(most_blocks);
  blocks.stream.reserve(most_blocks);
  blocks.pool.reserve(most_blocks);
  store_.live_changes.reserve(events);
  store_.totals_changes.reserve(events);
}

void StoreBuilder::sort_metadata() {
  std::vector<BlockMetadata>& metadata = store_.blocks.metadata;
  std::stable_sort(metadata.begin(), metadata.end(), [](const BlockMetadata& left, const BlockMetadata& right) {
    return left.block.value < right.block.value;
  });
}

const Store& StoreBuilder::so_far(std::string path, Definitions definitions, bool growing,
                                  std::optional<std::uint64_t> window_began_ns) {
  static_cast<Overview&>(store_) = tally_.so_far(std::move(path), std::move(definitions));
  store_.source.growing = growing;
  store_.window_began_ns = window_began_ns;
  sort_metadata();
  name_simulated_gpu();
  return store_;
}

Store StoreBuilder::finish(std::string path, Definitions definitions) && {
  static_cast<Overview&>(store_) = std::move(tally_).finish(std::move(path), std::move(definitions));
  sort_metadata();
  name_simulated_gpu();
  return std::move(store_);
}

void StoreBuilder::name_simulated_gpu() {
  for (const DeviceSeries& series : store_.samples.devices) {
    if (is_simulated_gpu(series.device.uuid)) store_.source.simulated_gpu = series.device.name;
  }
}

namespace {

// The samples of a recording, read beside its events: in the file they stand near the events of their time, before
// them or after.
class SampleFeed {
 public:
  /// Passes on samples with the times of `window`, which must outlive this.
  SampleFeed(SampleReader reader, const WindowTime& window) : reader_(std::move(reader)), window_(window) { read(); }

  /// Passes on samples taken before `time_ns`, a time of the file.
  template <typename Consumer>
  void before(std::uint64_t time_ns, Consumer& consumer) {
    while (next_ns_ < time_ns) take(consumer);
  }
  /// Passes on the rest, up to the end of the events: in a damaged file, samples end where events end.
  template <typename Consumer>
  void finish(std::uint64_t offset, Consumer& consumer) {
    end_ = offset;
    if (reader_.offset() > end_) batch_.clear();
    while (at_ < batch_.size()) take(consumer);
  }

 private:
  template <typename Consumer>
  void take(Consumer& consumer) {
    window_.shift(batch_[at_]);
    consumer.add_sample(batch_[at_++]);
    if (at_ == batch_.size()) read();
    find_time();
  }
  void read() {
    at_ = 0;
    const auto more = reader_.offset() < end_ ? reader_.next(batch_) : false;
    // An error also stops the reading of the events, which reports it.
    if (!more || !*more || reader_.offset() > end_) batch_.clear();
    find_time();
  }
  void find_time() {
    next_ns_ = at_ < batch_.size() ? time_of(batch_[at_]) : std::numeric_limits<std::uint64_t>::max();
  }

  SampleReader reader_;
  const WindowTime& window_;
  std::vector<SampleRecord> batch_;
  std::size_t at_ = 0;
  std::uint64_t next_ns_ = 0;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();
};

// An Overview keeps no samples.
struct OverviewConsumer {
  Tally& tally;
  const SampleConsumer& samples;
  std::string simulated_gpu;

  void add(const Event& event) const { tally.add(event); }
  void begin() const { tally.begin(); }
  void add_sample(const SampleRecord& record) {
    const auto* device = std::get_if<SampledDevice>(&record);
    if (device != nullptr && is_simulated_gpu(device->uuid)) simulated_gpu = device->name;
    if (samples) samples(record, tally);
  }
};

struct ReadDefinitions {
  Definitions definitions;
  std::optional<std::uint64_t> window_began_ns;
};

// Feeds every event of a recording, and the samples between events by time, to `consumer` (an OverviewConsumer or a
// StoreBuilder); calls `check` after each batch.
template <typename Consumer, typename Check>
Result<ReadDefinitions> feed(const std::string& path, const Progress& progress, Consumer& consumer,
                             const Check& check) {
  auto reader = TraceReader::open(path);
  if (!reader) return reader.error();
  auto sample_reader = SampleReader::open(path);
  if (!sample_reader) return sample_reader.error();
  WindowTime window;
  SampleFeed samples(std::move(*sample_reader), window);
  TraceReader& trace = **reader;
  std::vector<Event> batch;
  for (;;) {
    const auto more = trace.next(batch);
    if (!more) return more.error();
    if (!*more) break;
    for (Event& event : batch) {
      if (window.take_lead_in(event, consumer)) continue;
      samples.before(event.time_ns, consumer);
      window.shift(event.time_ns);
      consumer.add(event);
    }
    if (Result<void> status = check(); !status) return status.error();
    if (progress) progress(trace.offset(), trace.size());
  }
  samples.finish(trace.offset(), consumer);
  ReadDefinitions read{trace.definitions(), window.began_ns()};
  window.shift(read.definitions);
  return read;
}

}  // namespace

std::uint64_t Store::changes_until(std::uint64_t time_ns) const {
  const auto after =
      std::upper_bound(live_changes.begin(), live_changes.end(), time_ns,
                       [](std::uint64_t time, const LiveChange& change) { return time < change.time_ns; });
  return static_cast<std::uint64_t>(after - live_changes.begin());
}

Result<Overview> load_overview(const std::string& path, const Progress& progress, const SampleConsumer& samples) {
  Tally tally;
  OverviewConsumer consumer{tally, samples, {}};
  auto definitions = feed(path, progress, consumer, [] { return Result<void>(); });
  if (!definitions) return definitions.error();
  Overview overview = std::move(tally).finish(path, std::move(definitions->definitions));
  overview.window_began_ns = definitions->window_began_ns;
  overview.source.simulated_gpu = consumer.simulated_gpu;
  return overview;
}

Result<Store> load_store(const std::string& path, const Progress& progress) {
  StoreBuilder builder;
  auto definitions = feed(path, progress, builder, [&]() -> Result<void> {
    if (!builder.full()) return {};
    return Error{fmt::format(
        "{}: more events than fit in memory indexes (4,294,967,294); `tidemark summary` reads recordings of any length",
        path)};
  });
  if (!definitions) return definitions.error();
  Store store = std::move(builder).finish(path, std::move(definitions->definitions));
  store.window_began_ns = definitions->window_began_ns;
  return store;
}

}  // namespace tidemark
