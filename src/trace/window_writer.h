// Writes the last part of an unlimited recording: segments, of which the oldest are deleted when enough others exist.
//
// Each segment is a separate file that any reader can read, even after its writer was killed. It begins with the
// required earlier data: the process, losses so far, the open ranges, the latest tensors of the model, and the live
// blocks (LiveBlocks::lead_in). Definitions are written into each segment that uses them.
//
//   time ──▶   [segment 1][segment 2] … [segment 8][segment 9, being written
//               goes when the others are enough
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "trace/kept_definitions.h"
#include "trace/live_blocks.h"
#include "trace/recording_writer.h"
#include "trace/sink.h"
#include "trace/writer.h"

namespace tidemark {

/// Minimum to keep, if available; as soon as one of them is reached, older segments are deleted. 0 = no limit; not
/// both.
struct WindowLimits {
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

/// A complete file of a window. It is deleted with the last owner of this object.
class SegmentFile {
 public:
  explicit SegmentFile(std::string path) : path_(std::move(path)) {}
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Keeps the file when this object is destroyed.
  void leave() { left_ = true; }

  std::uint64_t begin_ns = 0;
  std::uint64_t bytes = 0;
  // Global numbers of its threads and modules, by their ids: the same in all segments of a window.
  std::vector<std::uint64_t> threads;
  std::vector<std::uint64_t> nn_modules;

 private:
  std::string path_;
  bool left_ = false;
};

using SegmentFiles = std::vector<std::shared_ptr<SegmentFile>>;

/// Times are event times. At most 5/4 of the limits is kept, plus a frame of each segment, and the segments' initial
/// data. Not thread-safe.
class WindowWriter final : public RecordingWriter {
 public:
  /// Opens the file of another segment, and sets its path. Destroyed when no more segments will be opened.
  using OpenSegment = std::function<Result<std::unique_ptr<Sink>>(std::string& path)>;

  static Result<std::unique_ptr<WindowWriter>> create(OpenSegment open, WindowLimits limits,
                                                      const ProcessInfo& process);

  /// Whether the segment has got its part of the window, at this time.
  [[nodiscard]] bool is_due(std::uint64_t now_ns) const;
  /// Ends the segment, and begins one at `now_ns`; no event so far is later. Old ones go.
  Result<void> next_segment(std::uint64_t now_ns);
  /// Path of the segment being written; empty if there is none any more.
  [[nodiscard]] std::string path() const { return file_ != nullptr ? file_->path() : std::string(); }
  /// Complete segments, the oldest first; after finish() all.
  [[nodiscard]] SegmentFiles complete() const { return {complete_.begin(), complete_.end()}; }
  /// Keeps all segments when this object is destroyed.
  void leave();

  /// Whether unused definitions should be removed: call keep() of definitions for all that are referenced elsewhere,
  /// then sweep().
  [[nodiscard]] bool has_grown() const { return definitions_.has_grown(); }
  [[nodiscard]] KeptDefinitions& definitions() { return definitions_; }
  void sweep();

  StringId string(std::string_view text) override { return definitions_.string(text); }
  LocationId location(const Location& location) override { return definitions_.location(location); }
  StackId stack(StackId parent, LocationId location) override { return definitions_.stack(parent, location); }
  ModuleId module(const ModuleInfo& module) override { return definitions_.module(module); }
  AutogradNodeId autograd_node(const AutogradNode& node) override { return definitions_.autograd_node(node); }
  ThreadId thread(const ThreadInfo& thread) override { return definitions_.thread(thread); }
  NnModuleId nn_module(const NnModule& module) override { return definitions_.nn_module(module); }
  void nn_module_name(const NnModuleName& name) override { definitions_.nn_module_name(name); }
  void tensor(const ModelTensor& tensor) override;
  void process(const ProcessInfo& process) override;
  Result<void> event(const Event& event) override;
  void mark(const Mark& mark) override;
  void sample(const SampleRecord& record) override;
  void loss(const Loss& loss) override;
  Result<void> flush() override { return segment_ ? segment_->flush() : Result<void>(); }
  Result<void> finish(const EndInfo& end) override;
  Result<void> finish_after_error(const EndInfo& end) override;
  void leave_out_above(std::uint64_t /*bytes*/) override {}  // the limits of a window are others
  [[nodiscard]] bool left_out() const override { return false; }
  [[nodiscard]] std::uint64_t bytes_written() const override;
  [[nodiscard]] std::uint64_t bytes_pending() const override { return segment_ ? segment_->bytes_pending() : 0; }

 private:
  /// Latest tensors, by kind and place.
  using TensorKey = std::tuple<int, int, int, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;

  WindowWriter(OpenSegment open, WindowLimits limits, ProcessInfo process)
      : open_(std::move(open)), limits_(limits), process_(std::move(process)) {}

  Result<void> begin_segment(std::uint64_t now_ns);
  Result<void> write_lead_in();
  Result<void> end_segment(const EndInfo& end);
  void drop_old(std::uint64_t now_ns);
  void forget_dead_tensors();
  void write(const ModelTensor& tensor);
  void write(const Mark& mark);

  OpenSegment open_;
  WindowLimits limits_;
  ProcessInfo process_;
  KeptDefinitions definitions_;
  LiveBlocks live_;
  std::vector<SampledDevice> devices_;
  std::vector<Loss> losses_;       ///< each kind, text and limit once
  std::vector<Mark> open_ranges_;  ///< at most kMaxOpenRanges, the latest
  std::map<TensorKey, ModelTensor> tensors_;
  std::deque<std::shared_ptr<SegmentFile>> complete_;
  std::shared_ptr<SegmentFile> file_;     ///< of the segment that is being written
  std::unique_ptr<TraceWriter> segment_;  ///< null if there is none any more
  std::uint64_t begun_with_bytes_ = 0;
};

}  // namespace tidemark
