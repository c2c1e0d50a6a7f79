#include "import/pytorch_snapshot/load_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "import/pytorch_snapshot/model/name_frames.h"
#include "import/pytorch_snapshot/read_snapshot.h"
#include "store/builder.h"
#include "store/tally.h"

namespace tidemark::pytorch {

namespace {

Definitions definitions_of(Snapshot& snapshot, SnapshotFacts& facts) {
  Definitions definitions = std::move(snapshot.definitions);
  definitions.process.start_wall_ns = facts.start_wall_ns;
  definitions.marks = std::move(facts.marks);
  StringId unnamed;
  for (Mark& mark : definitions.marks) {
    if (mark.name.valid()) continue;
    if (!unnamed.valid()) {
      unnamed.value = static_cast<std::uint32_t>(definitions.strings.size());
      definitions.strings.emplace_back("(unnamed)");
    }
    mark.name = unnamed;
  }
  return definitions;
}

void add_source(const Snapshot& snapshot, SnapshotFacts facts, Overview& overview) {
  overview.event_count = facts.entry_count;
  overview.source.kind = SourceKind::pytorch_snapshot;
  overview.source.allocator_settings = snapshot.settings;
  overview.source.issues = std::move(facts.issues);
}

void add_to(StoreBuilder& builder, const ReplayedEvent& replayed) {
  const Event& event = replayed.event;
  switch (replayed.kind) {
    case ReplayedEvent::Kind::event:
      builder.add(event, replayed.details);
      if (replayed.held_back) builder.defer_free(event.slot);
      break;
    case ReplayedEvent::Kind::out_of_memory:
      builder.add_out_of_memory(event, replayed.failed);
      break;
    case ReplayedEvent::Kind::segment_change:
      builder.add_segment_change(event.device, event.time_ns, replayed.segment);
      break;
    case ReplayedEvent::Kind::completion:
      builder.complete(event.time_ns, event.slot);
      break;
    case ReplayedEvent::Kind::annotation:
      builder.add_metadata(event.slot, replayed.details.metadata);
      break;
    case ReplayedEvent::Kind::totals:
      break;
  }
  builder.add_totals(event.device, event.time_ns, replayed.totals);
}

void add_to(Tally& tally, const ReplayedEvent& replayed) {
  const Event& event = replayed.event;
  if (replayed.kind == ReplayedEvent::Kind::event) tally.add(event);
  if (replayed.kind == ReplayedEvent::Kind::out_of_memory) tally.add_out_of_memory(event, replayed.failed);
  tally.add_totals(event.device, event.time_ns, replayed.totals);
}

/// The event as it was in the recording that the snapshot was exported from. Only block events are contained in it.
std::optional<Event> recorded_event(const ReplayedEvent& replayed, const std::vector<Device>& devices) {
  using Kind = ReplayedEvent::Kind;
  if (replayed.kind != Kind::event && replayed.kind != Kind::out_of_memory) return std::nullopt;
  Event event = replayed.event;
  const std::size_t number = static_cast<std::uint8_t>(event.device.index);
  if (number < devices.size()) event.device = devices[number];
  event.has_totals = false;
  return event;
}

/// Replays the snapshot into a Tally or a StoreBuilder.
template <typename Target>
SnapshotFacts replay_into(Target& target, const Snapshot& snapshot) {
  return replay_events(
      snapshot,
      [&](const ReplayedEvent& replayed) {
        if (snapshot.recorded_devices.empty()) {
          add_to(target, replayed);
        } else if (const auto event = recorded_event(replayed, snapshot.recorded_devices)) {
          target.add(*event);
        }
      },
      [&] { target.begin(); });
}

using Take = std::function<void(const ReplayedEvent&)>;

/// Converts times of a snapshot to times of a recording.
class SnapshotClock {
 public:
  explicit SnapshotClock(std::int64_t start_us) : start_us_(start_us) {}

  /// 0 for times before the start.
  [[nodiscard]] std::uint64_t since_start_ns(std::int64_t time_us) const {
    // Wraps around for invalid times.
    const std::uint64_t us = static_cast<std::uint64_t>(time_us) - static_cast<std::uint64_t>(start_us_);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, static_cast<std::int64_t>(us * 1000)));
  }

 private:
  std::int64_t start_us_;
};

/// The calls of one device's replay as events. Holds each event back until the next call: the completion of a free
/// belongs to its request.
class EventMaker : public ReplaySink {
 public:
  /// `slots`: numbers given to blocks of other devices already. `knows_pools`: entries name the pool. `trace` may be
  /// null.
  EventMaker(std::int32_t device, const DeviceTrace* trace, SnapshotClock clock, std::uint32_t slots, bool knows_pools,
             Take before, Take after)
      : device_{DeviceType::cuda, static_cast<std::int8_t>(device)},
        trace_(trace),
        clock_(clock),
        slots_(slots),
        knows_pools_(knows_pools),
        before_(std::move(before)),
        after_(std::move(after)) {}

  void segment_reserved(const ReplaySegment& segment, const TracePosition& when, const MemoryTotals& totals) override {
    change_segment(segment, true, when, totals);
  }
  void segment_released(const ReplaySegment& segment, const TracePosition& when, const MemoryTotals& totals) override {
    change_segment(segment, false, when, totals);
  }
  void block_allocated(const ReplayBlock& block, const TracePosition& when, const MemoryTotals& totals) override {
    sizes_.push_back(block.size);
    if (block.pending) {
      hold(when, totals).kind = ReplayedEvent::Kind::totals;
      return;
    }
    ReplayedEvent& next = hold(when, totals);
    next.event.kind = EventKind::allocate;
    next.event.slot = SlotId{slots_ + block.id};
    next.event.address = block.address;
    next.event.size = block.size;
    next.event.stack = when.stack;
    next.details = {block.requested, block.stream, block.pool, user_metadata_of(when)};
  }
  void free_requested(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override {
    ReplayedEvent& next = hold(when, totals);
    next.event.kind = EventKind::free;
    next.event.slot = SlotId{slots_ + block};
    next.event.size = sizes_[block];
    next.held_back = true;
    requested_ = block;
  }
  void free_completed(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override {
    if (held_ && std::exchange(requested_, kNone) == block) {
      held_->held_back = false;
      held_->totals = {totals.active, totals.reserved};
      return;
    }
    ReplayedEvent& next = hold(when, totals);
    next.kind = ReplayedEvent::Kind::completion;
    next.event.slot = SlotId{slots_ + block};
  }
  void out_of_memory(const ReplayOutOfMemory& event, const TracePosition& when, const MemoryTotals& totals) override {
    ReplayedEvent& next = hold(when, totals);
    next.kind = ReplayedEvent::Kind::out_of_memory;
    next.event.kind = EventKind::out_of_memory;
    next.event.size = event.requested;
    next.event.stack = when.stack;
    next.failed.device_free = event.device_free;
    next.failed.stream = event.stream;
    if (knows_pools_) next.failed.pool = event.pool;
  }
  void annotated(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override {
    ReplayedEvent& next = hold(when, totals);
    next.kind = ReplayedEvent::Kind::annotation;
    next.event.slot = SlotId{slots_ + block};
    next.details.metadata = user_metadata_of(when);
  }
  void marked(Action action, const TracePosition& when, const MemoryTotals&) override {
    if (action != Action::user_defined) return;
    marks.push_back({Mark::Kind::point, clock_.since_start_ns(when.time_us), user_metadata_of(when), ThreadId{}});
  }

  [[nodiscard]] Device device() const { return device_; }

  /// After the replay. The number of blocks there were.
  std::uint32_t finish() {
    flush();
    return static_cast<std::uint32_t>(sizes_.size());
  }

  std::vector<Mark> marks;  ///< the entries `user_defined` so far

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void flush() {
    if (held_) (held_before_ ? before_ : after_)(*held_);
    held_.reset();
  }
  void change_segment(const ReplaySegment& segment, bool reserved, const TracePosition& when,
                      const MemoryTotals& totals) {
    ReplayedEvent& next = hold(when, totals);
    next.kind = ReplayedEvent::Kind::segment_change;
    next.segment.address = segment.address;
    next.segment.size = segment.size;
    next.segment.stack = when.stack;
    next.segment.stream = segment.stream;
    next.segment.pool = segment.pool;
    next.segment.reserved = reserved;
    next.segment.expandable = segment.kind == SegmentKind::expandable;
  }

  ReplayedEvent& hold(const TracePosition& when, const MemoryTotals& totals) {
    flush();
    ReplayedEvent& next = held_.emplace();
    held_before_ = !when.entry;
    requested_ = kNone;
    if (!held_before_) next.event.time_ns = clock_.since_start_ns(when.time_us);
    next.event.device = device_;
    next.event.has_totals = true;
    next.event.total_allocated = totals.allocated;
    next.event.total_reserved = totals.reserved;
    next.totals = {totals.active, totals.reserved};
    return next;
  }
  [[nodiscard]] StringId user_metadata_of(const TracePosition& when) const {
    if (trace_ == nullptr || !when.entry) return {};
    const auto& texts = trace_->user_metadata;
    const auto found = std::lower_bound(texts.begin(), texts.end(), *when.entry,
                                        [](const EntryText& text, std::uint32_t entry) { return text.entry < entry; });
    return found != texts.end() && found->entry == *when.entry ? found->text : StringId{};
  }

  const Device device_;
  const DeviceTrace* const trace_;
  const SnapshotClock clock_;
  const std::uint32_t slots_;
  const bool knows_pools_;
  const Take before_;
  const Take after_;
  std::vector<std::uint64_t> sizes_;  // by block
  std::optional<ReplayedEvent> held_;
  bool held_before_ = false;
  std::uint32_t requested_ = kNone;  // the block with the delayed free
};

constexpr std::int32_t kLastDevice = std::numeric_limits<std::int8_t>::max();

std::set<std::int32_t> devices_of(const Snapshot& snapshot) {
  std::set<std::int32_t> devices;
  for (const DeviceTrace& trace : snapshot.traces) devices.insert(trace.device);
  for (const SnapshotSegment& segment : snapshot.segments) devices.insert(segment.device);
  return devices;
}

/// The earliest first entry; 0 if no entry has a time.
std::int64_t start_of(const Snapshot& snapshot) {
  std::optional<std::int64_t> start;
  for (const DeviceTrace& trace : snapshot.traces) {
    if (trace.entries.size() == trace.unknown_times) continue;
    const std::int64_t first = trace.entries.front().time_us;
    start = start ? std::min(*start, first) : first;
  }
  return start.value_or(0);
}

void add_names(QualityId id, const QualityNames& counts, std::vector<QualityIssue>& issues) {
  if (counts.empty()) return;
  std::uint64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  issues.push_back({id, total, {{"names", counts}}});
}

}  // namespace

Overview make_overview(Snapshot snapshot, const std::string& path) {
  name_frames(snapshot);
  Tally tally;
  SnapshotFacts facts = replay_into(tally, snapshot);
  Overview overview = std::move(tally).finish(path, definitions_of(snapshot, facts));
  add_source(snapshot, std::move(facts), overview);
  return overview;
}

Result<Store> make_store(Snapshot snapshot, const std::string& path) {
  name_frames(snapshot);
  StoreBuilder builder;
  std::size_t entries = 0;
  for (const DeviceTrace& trace : snapshot.traces) entries += trace.entries.size();
  builder.reserve(entries);
  SnapshotFacts facts = replay_into(builder, snapshot);
  if (builder.full()) return Error{fmt::format("{}: more events than fit in memory indexes (4,294,967,294)", path)};
  Store store = std::move(builder).finish(path, definitions_of(snapshot, facts));
  add_source(snapshot, std::move(facts), store);
  if (!snapshot.recorded_devices.empty()) return store;
  store.streams = std::move(snapshot.streams);
  store.pools = std::move(snapshot.pools);
  return store;
}

Result<Overview> load_overview(const std::string& path, const Progress& progress) {
  auto snapshot = read_snapshot(path, progress);
  if (!snapshot) return snapshot.error();
  return make_overview(std::move(*snapshot), path);
}

Result<Store> load_store(const std::string& path, const Progress& progress) {
  auto snapshot = read_snapshot(path, progress);
  if (!snapshot) return snapshot.error();
  return make_store(std::move(*snapshot), path);
}

SnapshotFacts replay_events(const Snapshot& snapshot, const Take& take, const std::function<void()>& begin) {
  SnapshotFacts facts;
  const std::int64_t start_us = start_of(snapshot);
  if (start_us > 0) facts.start_wall_ns = static_cast<std::uint64_t>(start_us) * 1000;
  for (const DeviceTrace& trace : snapshot.traces) facts.entry_count += trace.entries.size();

  const SnapshotClock clock(start_us);
  for (const Annotation& annotation : snapshot.annotations) {
    facts.marks.push_back({annotation.start ? Mark::Kind::range_begin : Mark::Kind::range_end,
                           clock.since_start_ns(annotation.time_us), annotation.name, ThreadId{}});
  }
  const std::set<std::int32_t> devices = devices_of(snapshot);
  std::vector<ReplayedEvent> later;  // of several devices: merged in the end
  bool begun = false;
  const Take at_once = [&](const ReplayedEvent& event) {
    if (!std::exchange(begun, true)) begin();
    take(event);
  };
  std::uint64_t latest_ns = 0;
  // If the clock steps back, the events of a device still stay in their order.
  const Take keep = [&](const ReplayedEvent& event) {
    later.push_back(event);
    later.back().event.time_ns = latest_ns = std::max(latest_ns, event.event.time_ns);
  };
  std::uint32_t slots = 0;
  for (const std::int32_t device : devices) {
    if (device < 0 || device > kLastDevice) {
      facts.issues.push_back({QualityId::impossible_device, std::nullopt, {{"number", std::to_string(device)}}});
      continue;
    }
    latest_ns = 0;
    EventMaker events(device, snapshot.trace_of(device), clock, slots, snapshot.entries_name_pools, take,
                      devices.size() == 1 ? at_once : keep);
    ReplaySummary summary = replay(snapshot, device, events);
    slots += events.finish();
    facts.marks.insert(facts.marks.end(), events.marks.begin(), events.marks.end());
    if (!snapshot.recorded_devices.empty()) {
      // Pages used by blocks exist from the start, and blocks lie anywhere in them.
      summary.quality.initial_segments = 0;
      summary.quality.unexplained_gaps = 0;
    }
    for (QualityIssue& issue : summary.quality.issues()) {
      if (devices.size() > 1) issue.params.push_back({"device", to_string(events.device())});
      facts.issues.push_back(std::move(issue));
    }
  }
  if (!begun) begin();
  std::stable_sort(later.begin(), later.end(), [](const ReplayedEvent& left, const ReplayedEvent& right) {
    return left.event.time_ns < right.event.time_ns;
  });
  for (const ReplayedEvent& event : later) take(event);
  if (!snapshot.recorded_devices.empty()) {
    facts.issues.push_back({QualityId::exported_recording, std::nullopt});
  }
  add_names(QualityId::invalid_fields, snapshot.invalid_fields, facts.issues);
  add_names(QualityId::unknown_actions, snapshot.unknown_actions, facts.issues);
  add_names(QualityId::unknown_keys, snapshot.unknown_keys, facts.issues);
  return facts;
}

}  // namespace tidemark::pytorch
