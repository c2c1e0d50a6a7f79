// Fuzz target of the snapshot reader: whatever the bytes, it must end without a crash, a hang or a broken promise, and
// make the same of them when they come in small pieces. What it takes for a snapshot is replayed and summarized, too.
//
//   pickle_fuzz -dict=tests/fuzz/pickle.dict -max_total_time=60 NEW_CORPUS tests/fuzz/corpus/pickle
//   tests/data/snapshots
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "analyze/timeline/timeline.h"
#include "analyze/usage/summary.h"
#include "base/byte_stream.h"
#include "fuzz/require.h"
#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/load_snapshot.h"
#include "import/pytorch_snapshot/read_snapshot.h"
#include "import/unpack.h"

namespace {

using namespace tidemark;
using tidemark::testing::require;
using namespace tidemark::pytorch;

/// Returns 1, 2, … bytes per read, and starts again with 1 after a few dozen.
class InPieces final : public ByteStream {
 public:
  explicit InPieces(std::unique_ptr<ByteStream> whole) : whole_(std::move(whole)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    next_ = next_ % 40 + 1;
    return whole_->read(out.first(std::min(next_, out.size())));
  }
  [[nodiscard]] std::uint64_t stored_offset() const override { return whole_->stored_offset(); }
  [[nodiscard]] std::uint64_t stored_size() const override { return whole_->stored_size(); }
  [[nodiscard]] std::string_view packing() const override { return whole_->packing(); }
  [[nodiscard]] const std::string& name() const override { return whole_->name(); }

 private:
  std::unique_ptr<ByteStream> whole_;
  std::size_t next_ = 0;
};

/// Checks the invariants that users of a snapshot rely on, and sums up its content.
class Checked {
 public:
  explicit Checked(const Snapshot& snapshot) : snapshot_(snapshot) {
    const Definitions& all = snapshot.definitions;
    for (std::size_t n = 0; n < all.stacks.size(); ++n) {
      const StackNode& node = all.stacks[n];
      require(!node.parent.valid() || node.parent.value < n, "a stack's parent comes before it");
      require(node.location.value < all.locations.size(), "a stack has a location");
      add(node.parent.value, node.location.value);
    }
    for (const Location& location : all.locations) {
      require(location.function.valid() && location.file.valid(), "a location has a function and a file");
      add(location.line);
      add(location.function);
      add(location.file);
    }
    require(!snapshot.streams.empty() && snapshot.streams[0] == 0, "the default stream is there");
    require(!snapshot.pools.empty() && snapshot.pools[0] == PoolId{}, "the default pool is there");
    for (const DeviceTrace& trace : snapshot.traces) check(trace);
    for (const SnapshotSegment& segment : snapshot.segments) check(segment);
    for (const Annotation& each : snapshot.annotations) {
      if (each.name.valid()) add(each.name);
      add(each.time_us, each.device.value_or(-1), each.start);
    }
    for (const auto& [key, count] : snapshot.unknown_keys) add(key, count);
    for (const auto& [field, count] : snapshot.invalid_fields) add(field, count);
    for (const auto& [action, count] : snapshot.unknown_actions) add(action, count);
    if (snapshot.settings) add(snapshot.settings->text, snapshot.settings->roundup_power2_divisions.size());
  }

  [[nodiscard]] std::uint64_t sum() const { return sum_; }
  /// Number of objects that take memory.
  [[nodiscard]] std::size_t items() const { return items_; }

 private:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    ++items_;
    ((sum_ = mix(sum_ ^ static_cast<std::uint64_t>(numbers))), ...);
  }
  void add(const std::string& text, std::uint64_t count = 0) { add(std::hash<std::string>{}(text), count); }
  void add(StringId id) {
    require(id.value < snapshot_.definitions.strings.size(), "a text is defined");
    add(snapshot_.definitions.strings[id.value]);
  }

  void check_place(StackId stack, std::uint16_t stream, std::uint16_t pool) {
    require(!stack.valid() || stack.value < snapshot_.definitions.stacks.size(), "a stack is defined");
    require(stream < snapshot_.streams.size(), "a stream is defined");
    require(pool < snapshot_.pools.size(), "a pool is defined");
    add(stack.value, snapshot_.streams[stream], snapshot_.pools[pool].first, snapshot_.pools[pool].second);
  }

  void check(const DeviceTrace& trace) {
    require(!trace.entries.empty(), "a device with a trace has entries");
    for (const TraceEntry& entry : trace.entries) {
      require(entry.action <= Action::unknown, "an action is one of the list");
      check_place(entry.stack, entry.stream, entry.pool);
      add(trace.device, entry.address, entry.size, entry.time_us, entry.action);
    }
    for (const auto* texts : {&trace.user_metadata, &trace.compile_context}) {
      std::uint32_t last = 0;
      for (const EntryText& each : *texts) {
        require(each.entry < trace.entries.size() && each.entry >= last, "texts belong to entries, in order");
        last = each.entry;
        add(each.entry);
        add(each.text);
      }
    }
  }

  void check(const SnapshotSegment& segment) {
    check_place(segment.stack, segment.stream, segment.pool);
    add(segment.address, segment.total_size, segment.allocated_size, segment.active_size, segment.requested_size,
        segment.device, segment.large, segment.expandable);
    std::uint64_t last = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      require(block.address >= last, "blocks are in order of address");
      last = block.address;
      check_place(block.stack, 0, 0);
      add(block.address, block.size, block.requested_size, block.state);
    }
  }

  const Snapshot& snapshot_;
  std::uint64_t sum_ = 0;
  std::size_t items_ = 0;
};

/// Both ways of loading have the same result for each device.
void check_loading(Snapshot first, Snapshot second) {
  const Overview overview = make_overview(std::move(first), "input");
  const Result<Store> store = make_store(std::move(second), "input");
  require(store.ok(), "a small snapshot has few events");
  require(overview.devices.size() == store->devices.size(), "an overview has the devices of a store");
  for (std::size_t n = 0; n < overview.devices.size(); ++n) {
    const DeviceSummary& brief = overview.devices[n];
    const DeviceSummary& whole = store->devices[n];
    require(brief.device == whole.device && brief.peak_allocated_bytes == whole.peak_allocated_bytes &&
                brief.allocation_count == whole.allocation_count && brief.free_count == whole.free_count &&
                brief.live_allocated_bytes == whole.live_allocated_bytes &&
                brief.peak_reserved_bytes == whole.peak_reserved_bytes,
            "an overview says of a device what a store says");
  }
  Symbols symbols(store->definitions);
  const auto summary = analyze_summary(*store, symbols, {});
  require(summary.ok() && summary->devices.size() == store->devices.size(), "a summary has every device");
  const auto timeline = analyze_timeline(*store, symbols, {std::nullopt, 100});
  require(timeline.ok(), "a timeline has every device");
  for (const TimelineSeries& series : timeline->series) {
    std::uint64_t highest = 0;
    for (const TimelinePoint& point : series.points) highest = std::max(highest, point.allocated_bytes);
    require(highest == series.peak_allocated_bytes, "a timeline reaches the peak");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto whole = read_snapshot(make_memory_stream(bytes, "input"));
  auto pieces = read_snapshot(std::make_unique<InPieces>(make_memory_stream(bytes, "input")));
  require(whole.ok() || whole.error().message.starts_with("input"), "an error names the file");
  if (whole.ok()) require(looks_like_snapshot(bytes.first(std::min<std::size_t>(size, 16))), "it looks like one");
  if (looks_packed(bytes)) return 0;  // how much is read before an error is found depends on the pieces

  require(whole.ok() == pieces.ok(), "pieces are read as the whole");
  if (!whole.ok()) {
    require(whole.error().message == pieces.error().message, "the error is the same in pieces");
    return 0;
  }
  const Checked checked(*whole);
  require(checked.sum() == Checked(*pieces).sum(), "pieces make the same snapshot");
  require(checked.items() <= 8 * size + 8, "what takes memory was in the file");
  check_loading(std::move(*whole), std::move(*pieces));
  return 0;
}
