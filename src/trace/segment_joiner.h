// Segments of a window, one after the other, into one recording: all that each holds, without what it begins with.
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
  std::uint64_t event_count = 0;  ///< without what the recording begins with
  std::uint64_t oom_count = 0;    ///< of these, requests that failed
  std::uint64_t bytes = 0;
  std::uint64_t end_ns = 0;  ///< when what the segments hold ended
};

/// Memory grows with definitions and live blocks, not with events. Not thread-safe.
class SegmentJoiner {
 public:
  explicit SegmentJoiner(std::unique_ptr<TraceWriter> writer) : writer_(std::move(writer)) {}

  /// The next segment begins, which `reader` has at its beginning: it follows those before, or is the first.
  /// `file`: what its writer knows of it. Where null, a thread is the one of the segments before that has its number
  /// and name, and a module the latest at its address: a module that was dropped and one that came to its place in
  /// another segment are then taken for the same.
  void begin(TraceReader& reader, const SegmentFile* file);
  /// One frame of it. False where there is none, as TraceReader has it. An error is that of the writer or the reader.
  Result<bool> take_frame();
  /// There is nothing more in it: what is missing of it becomes known.
  void end_segment();
  /// The recording is complete.
  Result<JoinedRecording> finish();

  /// The end of the segment under way, once it has been read.
  [[nodiscard]] const std::optional<EndInfo>& end() const { return reader_->definitions().end; }
  /// When the segment under way begins, by itself; none before that was read, and of a recording's first.
  [[nodiscard]] const std::optional<std::uint64_t>& begin_ns() const { return begin_ns_; }
  [[nodiscard]] TraceWriter& writer() { return *writer_; }

 private:
  // What the segment under way calls an entry → what it is called in the result.
  struct Ids {
    std::vector<StringId> strings;
    std::vector<LocationId> locations;
    std::vector<StackId> stacks;
    std::vector<ThreadId> threads;
    std::vector<ModuleId> modules;
    std::vector<NnModuleId> nn_modules;
    std::vector<AutogradNodeId> nodes;
  };
  /// Threads and modules are no values: what tells that those of two segments are the same.
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
  /// What a segment begins with is known from those before.
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

/// Writes what complete segments, which follow each other and of which there is one at least, hold: the first with what
/// it begins with, the others without. Memory grows with definitions and live blocks, not with events. An error is that
/// of a file which cannot be read or written, and names it.
Result<JoinedRecording> join_segments(const SegmentFiles& segments, std::unique_ptr<Sink> sink);

}  // namespace tidemark
