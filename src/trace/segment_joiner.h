// Joins consecutive segments of a window into one recording, without their initial events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trace/format.h"
#include "trace/reader.h"
#include "trace/sink.h"
#include "trace/window_writer.h"
#include "trace/writer.h"

namespace tidemark {

struct JoinedRecording {
  std::uint64_t event_count = 0;  ///< without the recording's initial events
  std::uint64_t oom_count = 0;    ///< of these, requests that failed
  std::uint64_t bytes = 0;
  std::uint64_t end_ns = 0;  ///< end of the last segment's events
};

/// Memory grows with definitions and live blocks, not with events. Not thread-safe.
class SegmentJoiner {
 public:
  explicit SegmentJoiner(std::unique_ptr<TraceWriter> writer) : writer_(std::move(writer)) {}

  /// Begins the next segment, with `reader` at its beginning: it follows the ones before, or is the first. `file`: its
  /// writer's data. If null, threads with equal number and name in different segments are the same, and a module is the
  /// latest at its address: a module that was unloaded and its successor at the same address in another segment are
  /// then mistaken for one.
  void begin(TraceReader& reader, const SegmentFile* file);
  /// Takes one frame of the segment. Returns false if there is none, as TraceReader does. The error is the writer's or
  /// the reader's.
  Result<bool> take_frame();
  /// Ends the segment: its losses are added.
  void end_segment();
  /// The recording is complete.
  Result<JoinedRecording> finish();

  /// The end of the segment under way, once it has been read.
  [[nodiscard]] const std::optional<EndInfo>& end() const { return reader_->definitions().end; }
  /// The beginning of the current segment, from its own data; nullopt until that was read, and for a recording's first.
  [[nodiscard]] const std::optional<std::uint64_t>& begin_ns() const { return begin_ns_; }
  [[nodiscard]] TraceWriter& writer() { return *writer_; }

 private:
  // Ids of the current segment → ids in the result.
  struct Ids {
    std::vector<StringId> strings;
    std::vector<LocationId> locations;
    std::vector<StackId> stacks;
    std::vector<ThreadId> threads;
    std::vector<ModuleId> modules;
    std::vector<NnModuleId> nn_modules;
    std::vector<AutogradNodeId> nodes;
  };
  /// Threads and modules are not values: keys that identify them across segments.
  using Key = std::variant<std::uint64_t, std::pair<std::uint64_t, std::string>>;
  template <typename Id>
  struct Objects {
    std::map<Key, Id> before;  ///< the latest of each key in earlier segments
    std::map<Key, Id> here;

    void begin_segment() {
      for (const auto& [key, id] : here) before[key] = id;
      here.clear();
    }
    /// The same as before, at most once in a segment, or a new one.
    template <typename Make>
    Id find(const Key& key, const Make& make) {
      const auto known = before.find(key);
      const Id id = known != before.end() && !here.contains(key) ? known->second : make();
      here[key] = id;
      return id;
    }
  };

  void take(format::RecordKind kind, const Definitions& definitions);
  void take(ModelTensor tensor);
  void take(Mark mark);
  void take(const SampleRecord& record);
  Result<void> take(Event event);
  [[nodiscard]] Location mapped_location(Location location) const;
  /// The lead-in of a program that has paused ends with a pause.
  [[nodiscard]] bool is_pause_behind_lead_in(const Event& event) const;
  /// The initial events of a segment are known from the segments before.
  [[nodiscard]] bool skips() const { return in_lead_in_ && !first_; }

  std::unique_ptr<TraceWriter> writer_;
  TraceReader* reader_ = nullptr;  ///< of the segment under way
  const SegmentFile* file_ = nullptr;
  Ids ids_;
  bool first_ = true;
  bool in_lead_in_ = false;
  bool behind_lead_in_ = false;  ///< at its end
  std::optional<std::uint64_t> begin_ns_;
  std::size_t devices_ = 0;
  std::size_t devices_here_ = 0;
  Objects<ThreadId> threads_;
  Objects<NnModuleId> nn_modules_;
  std::vector<Event> batch_;
  std::optional<EndInfo> end_;
  JoinedRecording joined_;
};

/// Writes the content of complete, consecutive segments, at least one: the first with its initial events, the others
/// without. Memory grows with definitions and live blocks, not with events. The error is of a file that cannot be read
/// or written, and names it.
Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink);

}  // namespace tidemark
