// Prints the snapshot reader's values of a file, one JSON value per line, for pickle_compare.py to compare with
// Python's pickle. Exits with 2 and the error on stderr if the file is refused.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "import/pytorch_snapshot/read_snapshot.h"

namespace {

using nlohmann::json;
using namespace tidemark;
using namespace tidemark::pytorch;

constexpr const char* kActions[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                    "segment_free", "segment_map",    "segment_unmap",  "snapshot",
                                    "oom",          "user_defined",   "annotate",       "unknown"};
constexpr const char* kStates[] = {"inactive", "active_allocated", "active_pending_free", "unknown"};

class Dump {
 public:
  explicit Dump(const Snapshot& snapshot) : snapshot_(snapshot) {}

  void print() {
    const Definitions& all = snapshot_.definitions;
    for (const StackNode& node : all.stacks) {
      const Location& location = all.locations[node.location.value];
      print(json{"stack", id(node.parent.valid() ? node.parent.value : -1L), text(location.function),
                 text(location.file), location.line});
    }
    for (const DeviceTrace& trace : snapshot_.traces) print(trace);
    for (const SnapshotSegment& segment : snapshot_.segments) print(segment);
    for (const Annotation& each : snapshot_.annotations) {
      print(json{"annotation", each.time_us, each.device.value_or(-1), each.start, text(each.name)});
    }
    if (snapshot_.settings) print(*snapshot_.settings);
    print(json{"unknown", snapshot_.unknown_keys, snapshot_.unknown_actions, snapshot_.invalid_fields});
  }

 private:
  static void print(const json& line) { fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace)); }
  static json id(long value) { return value; }
  static json id(StackId stack) { return stack.valid() ? json(stack.value) : json(nullptr); }
  [[nodiscard]] json text(StringId string) const {
    return string.valid() ? json(snapshot_.definitions.strings[string.value]) : json(nullptr);
  }
  [[nodiscard]] json pool(std::uint16_t index) const {
    return {snapshot_.pools[index].first, snapshot_.pools[index].second};
  }

  void print(const DeviceTrace& trace) const {
    for (const TraceEntry& entry : trace.entries) {
      print(json{"entry", trace.device, kActions[static_cast<std::size_t>(entry.action)], entry.address, entry.size,
                 snapshot_.streams[entry.stream], entry.time_us, pool(entry.pool), id(entry.stack)});
    }
    for (const EntryText& each : trace.user_metadata)
      print(json{"user_metadata", trace.device, each.entry, text(each.text)});
    for (const EntryText& each : trace.compile_context) {
      print(json{"compile_context", trace.device, each.entry, text(each.text)});
    }
  }

  void print(const SnapshotSegment& segment) const {
    print(json{"segment", segment.device, segment.address, segment.total_size, segment.allocated_size,
               segment.active_size, segment.requested_size, snapshot_.streams[segment.stream], pool(segment.pool),
               segment.large, segment.expandable, id(segment.stack)});
    for (const SnapshotBlock& block : segment.blocks) {
      print(json{"block", block.address, block.size, block.requested_size,
                 kStates[static_cast<std::size_t>(block.state)], id(block.stack)});
    }
  }

  static void print(const AllocatorSettings& settings) {
    json divisions = json::object();
    for (const auto& [size, count] : settings.roundup_power2_divisions) divisions[fmt::format("{}", size)] = count;
    const auto value = [](const auto& optional) { return optional ? json(*optional) : json(nullptr); };
    print(json{"settings", value(settings.max_split_size), value(settings.garbage_collection_threshold),
               value(settings.expandable_segments), divisions, settings.text});
  }

  const Snapshot& snapshot_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const auto snapshot = read_snapshot(argv[1]);
  if (!snapshot.ok()) {
    fmt::print(stderr, "{}\n", snapshot.error().message);
    return 2;
  }
  Dump(*snapshot).print();
  return 0;
}
