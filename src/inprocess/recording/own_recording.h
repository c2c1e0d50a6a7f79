// A recording of this process, started and stopped by the process itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// A complete recording.
struct OwnRecordedFile {
  std::string path;
  std::int64_t pid = -1;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t bytes = 0;
  bool failed = false;
};

/// The result of a recorder.
struct RecorderEnd {
  std::vector<OwnRecordedFile> files;
  std::string messages;   ///< its messages, joined; may be empty
  bool finished = false;  ///< false if it was killed: files lack up to the last second
};

/// One thread. Destroying it without end() leaves the recorder running.
class RecorderProcess {
 public:
  /// `program`: path of tidemark; `options`: of `tidemark recorder`. The recorder listens, but records nothing yet.
  static Result<RecorderProcess> start(const std::string& program, const std::vector<std::string>& options);

  RecorderProcess(RecorderProcess&&) noexcept = default;
  RecorderProcess& operator=(RecorderProcess&&) noexcept = default;

  /// "NAME=value" for tidemark_connect().
  [[nodiscard]] const std::vector<std::string>& settings() const { return settings_; }
  /// Path of the recording library.
  [[nodiscard]] std::string library() const;
  /// Waits until the recorder has accepted this process; returns the path of the recording.
  Result<std::string> connected();
  /// Tells it to stop and waits until the files are complete.
  RecorderEnd end();

 private:
  RecorderProcess() = default;
  /// The next line of its output; std::nullopt at the end.
  std::optional<std::string> hear();
  [[nodiscard]] std::string read_messages() const;

  pid_t pid_ = -1;  // the recorder's, once received
  ScopedFd to_;
  ScopedFd from_;
  ScopedFd messages_;
  std::string heard_;  // received data after the last complete line
  std::vector<std::string> settings_;
};

struct OwnRecordingOptions {
  std::string path;                       ///< absolute: the recorder has another working folder
  std::string program;                    ///< path of tidemark
  std::vector<std::string> options = {};  ///< further options of `tidemark recorder`
};

/// At most one per process at a time. If the process is being recorded already, it is a range in that recording, named
/// as the file without its extension. One thread at a time. It is ended in a forked child.
class OwnRecording {
 public:
  OwnRecording() = default;
  OwnRecording(const OwnRecording&) = delete;
  OwnRecording& operator=(const OwnRecording&) = delete;

  /// Fails if a recording was started already, by this object or another one, and if nothing can be recorded.
  Result<void> start(const OwnRecordingOptions& options);
  /// The recordings, this process's first; empty if it was not started, or is a range. Fails if one is incomplete.
  Result<std::vector<OwnRecordedFile>> stop();
  [[nodiscard]] bool started() const;
  /// start() found that this process is already being recorded.
  [[nodiscard]] bool is_range() const { return started() && !range_.empty(); }

 private:
  Result<void> begin(const OwnRecordingOptions& options);
  Result<std::vector<OwnRecordedFile>> end();

  pid_t pid_ = 0;  // the process that started it; 0: none
  std::string path_;
  std::string range_;
  std::optional<RecorderProcess> recorder_;
};

/// Finds the recording library if it is in this process from its start (`tidemark run`) or a recorder is waiting for it
/// (`tidemark run --manual`).
void find_own_control_library();

}  // namespace tidemark
