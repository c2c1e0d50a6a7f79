/// @file
/// Recording this process into a file, and naming what it does: for programs in C++.
///
///     tidemark::Profiler profiler("train.tide");
///     profiler.start();
///     for (int epoch = 0; epoch < epochs; ++epoch) {
///       tidemark::mark("epoch " + std::to_string(epoch));
///       for (auto& batch : loader) {
///         tidemark::Step step;
///         train(batch);
///       }
///     }
///     for (const tidemark::RecordedFile& file : profiler.stop()) std::cout << file.path << "\n";
///
/// Recorded are the allocations of PyTorch's allocators in this process (libtorch), with stacks, and samples of devices
/// and of the host. The recorder is a process beside this one, so what happened is in the file however this one ends.
/// Memory that a program takes from CUDA itself (cudaMalloc) is recorded by `tidemark run --driver on -- PROGRAM`.
#ifndef TIDEMARK_PROFILER_H
#define TIDEMARK_PROFILER_H

#include <tidemark/error.h>
#include <tidemark/export.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
/// What is recorded; the names are those of the options of `tidemark run`.
struct RecordingOptions {
  std::string stacks = "native";           ///< with each allocation: "none", "python", "native" or "both"
  bool attribute = true;                   ///< also what memory belongs to: modules, parameters, backward nodes
  bool samples = true;                     ///< also sample devices and the host
  double sample_interval_seconds = 0.1;    ///< between two of these
  std::optional<std::uint64_t> max_bytes;  ///< stop before a file exceeds this
  bool replace = false;                    ///< replace an existing recording
};

/// A recording that is complete.
struct RecordedFile {
  std::string path;           ///< where it is
  std::int64_t pid = -1;      ///< of the process that it is of
  std::uint64_t events = 0;   ///< that it has
  std::uint64_t dropped = 0;  ///< events that were lost
  std::uint64_t bytes = 0;    ///< size of the file
  bool failed = false;        ///< writing stopped early, such as on a full disk
};

/// A recording of this process. One at a time: a second one is an Error.
///
/// Under `tidemark run` this process is being recorded already: then start() and stop() mark a range in that
/// recording, and no file is written. A forked child is recorded by the same recorder, in a file of its own, which
/// ends with the parent's. Not thread-safe, but any thread may call it.
class TIDEMARK_API Profiler {
 public:
  /// Records to `path`. Nothing happens before start().
  explicit Profiler(const std::string& path, RecordingOptions options = {});
  /// Ends the recording; what goes wrong then is a line on stderr.
  ~Profiler();
  Profiler(const Profiler&) = delete;             ///< It is one recording.
  Profiler& operator=(const Profiler&) = delete;  ///< It is one recording.

  /// Begins. Throws Error where nothing can be recorded, such as in a folder that is not writable or where the file
  /// exists. Memory that was allocated before is not seen.
  void start();
  /// Ends, and returns the recordings, this process's first; they can be read at once. Empty where it had not begun,
  /// or under `tidemark run`. Throws Error where a recording is not whole.
  std::vector<RecordedFile> stop();
  /// Between start() and stop().
  [[nodiscard]] bool is_recording() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Whether this process is being recorded, by a Profiler, by `tidemark run` or from Python; also while it is paused.
TIDEMARK_API bool is_recording() noexcept;

/// Stops recording events, until resume(). Calls do not nest. Nothing where nothing records.
TIDEMARK_API void pause() noexcept;
/// Continues what pause() stopped.
TIDEMARK_API void resume() noexcept;

/// Names this moment, such as "epoch 1" (at most 256 bytes of UTF-8, which are copied). Reports show memory at it.
/// Nothing where nothing records, for some nanoseconds.
TIDEMARK_API void mark(const char* name) noexcept;
/// The same.
inline void mark(const std::string& name) noexcept {
  mark(name.c_str());
}

/// Names what a thread does as long as this lives. Ranges nest. Any thread.
class TIDEMARK_API Scope {
 public:
  /// `name` must live as long as this, as a literal does: at most 256 bytes of UTF-8.
  explicit Scope(const char* name) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;             ///< It is one range.
  Scope& operator=(const Scope&) = delete;  ///< It is one range.

 private:
  const char* name_;  // null: nothing recorded when it began
};

/// One step of a training loop: `tidemark leaks` and `summary` take steps from it.
class TIDEMARK_API Step : public Scope {
 public:
  /// Begins a step, which ends with this object.
  Step() noexcept;
};

}  // namespace v1
}  // namespace tidemark

#endif
