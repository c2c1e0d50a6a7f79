#include "import/pytorch_snapshot/load_snapshot.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "import/pytorch_snapshot/read_snapshot.h"
#include "import/pytorch_snapshot/replay_events.h"
#include "store/builder.h"
#include "store/tally.h"

namespace tidemark::pytorch {
namespace {

/// Frames of native code are named by PyTorch when it writes the file; they have no line, Python's always do.
Definitions definitions_of(Snapshot& snapshot, SnapshotFacts& facts) {
  Definitions definitions = std::move(snapshot.definitions);
  bool python = false;
  bool native = false;
  for (Location& location : definitions.locations) {
    (location.line == 0 ? native : python) = true;
    if (location.line != 0) continue;
    location.kind = Location::Kind::named_native;
    if (definitions.strings[location.file.value] == "??") location.file = {};
  }
  definitions.process.stack_mode = python && native ? "both" : python ? "python" : native ? "native" : "none";
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
      if (replayed.held_back) builder.hold_back(event.slot);
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

/// The event as it was in the recording that the snapshot was exported from. Only blocks are known of that.
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

}  // namespace

Overview make_overview(Snapshot snapshot, const std::string& path) {
  Tally tally;
  SnapshotFacts facts = replay_into(tally, snapshot);
  Overview overview = std::move(tally).finish(path, definitions_of(snapshot, facts));
  add_source(snapshot, std::move(facts), overview);
  return overview;
}

Result<Store> make_store(Snapshot snapshot, const std::string& path) {
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

}  // namespace tidemark::pytorch
