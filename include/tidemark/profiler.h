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
/// Options of a recording, named like the options of `tidemark run`.
struct RecordingOptions {
  std::string stacks = "native";           ///< recorded with each allocation: "none", "python", "native" or "both"
  bool attribute = true;                   ///< also record owners of memory: modules, parameters, backward nodes
  bool samples = true;                     ///< also sample devices and the host
  double sample_interval_seconds = 0.1;    ///< between two of these
  std::optional<std::uint64_t> max_bytes;  ///< stop before a file exceeds this
  bool replace = false;                    ///< replace an existing recording
};

/// A recording that is complete.
struct RecordedFile {
  std::string path;           ///< path of the recording
  std::int64_t pid = -1;      ///< process of the recording
  std::uint64_t events = 0;   ///< number of recorded events
  std::uint64_t dropped = 0;  ///< events that were lost
  std::uint64_t bytes = 0;    ///< size of the file
  bool failed = false;        ///< writing stopped early, such as on a full disk
};

/// A recording of this process. Only one at a time: starting a second one throws Error.
///
/// Under `tidemark run` this process is already being recorded: then start() and stop() mark a range in that recording,
/// and no file is written. A forked child is recorded by the same recorder, into a separate file, which ends with the
/// parent's. Not thread-safe, but any thread may call it.
class TIDEMARK_API Profiler {
 public:
  /// Records to `path`. Nothing happens before start().
  explicit Profiler(const std::string& path, RecordingOptions options = {});
  /// Ends the recording; errors are printed to stderr.
  ~Profiler();
  Profiler(const Profiler&) = delete;             ///< It is one recording.
  Profiler& operator=(const Profiler&) = delete;  ///< It is one recording.

  /// Starts recording. Throws Error if that is impossible, for example if the folder is not writable or the file
  /// exists. Memory allocated earlier is not seen.
  void start();
  /// Ends the recording and returns the files, this process's first; they are complete. Empty if not started, or under
  /// `tidemark run`. Throws Error if a recording is incomplete.
  std::vector<RecordedFile> stop();
  /// Between start() and stop().
  [[nodiscard]] bool is_recording() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Whether this process is being recorded, by a Profiler, by `tidemark run` or from Python; also while it is paused.
TIDEMARK_API bool is_recording() noexcept;

/// Stops recording events until resume(). Calls do not nest. Does nothing if the process is not being recorded.
TIDEMARK_API void pause() noexcept;
/// Continues recording after pause().
TIDEMARK_API void resume() noexcept;

/// Names this moment, such as "epoch 1" (at most 256 bytes of UTF-8, which are copied). Reports show memory at it. If
/// the process is not being recorded, does nothing and takes some nanoseconds.
TIDEMARK_API void mark(const char* name) noexcept;
/// The same.
inline void mark(const std::string& name) noexcept {
  mark(name.c_str());
}

/// Names what a thread does during this object's lifetime. Ranges nest. Usable on any thread.
class TIDEMARK_API Scope {
 public:
  /// `name` must live as long as this, as a literal does: at most 256 bytes of UTF-8.
  explicit Scope(const char* name) noexcept;
  ~Scope();
  Scope(const Scope&) = delete;             ///< It is one range.
  Scope& operator=(const Scope&) = delete;  ///< It is one range.

 private:
  const char* name_;  // null if nothing was being recorded at the beginning
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
