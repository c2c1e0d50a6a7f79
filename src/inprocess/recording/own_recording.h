// A recording of this process, begun and ended by the process itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace tidemark {

/// A recording that is complete.
struct OwnRecordedFile {
  std::string path;
  std::int64_t pid = -1;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t bytes = 0;
  bool failed = false;
};

/// What a recorder left.
struct RecorderEnd {
  std::vector<OwnRecordedFile> files;
  std::string messages;   ///< what it said meanwhile, joined; may be empty
  bool finished = false;  ///< false where it was killed: files are as they were a second before
};

/// One thread. Leaves the recorder running where it is destroyed without end().
class RecorderProcess {
 public:
  /// `program`: tidemark's path; `options`: of `tidemark recorder`. It listens then; nothing is recorded yet.
  static Result<RecorderProcess> start(const std::string& program, const std::vector<std::string>& options);

  RecorderProcess(RecorderProcess&&) noexcept = default;
  RecorderProcess& operator=(RecorderProcess&&) noexcept = default;

  /// "NAME=value" for tidemark_connect().
  [[nodiscard]] const std::vector<std::string>& settings() const { return settings_; }
  /// Path of the library that records.
  [[nodiscard]] std::string library() const;
  /// Waits until it has taken this process in; the path of the recording.
  Result<std::string> connected();
  /// Tells it to end and waits until the files are complete.
  RecorderEnd end();

 private:
  RecorderProcess() = default;
  /// The next line that it says; none at its end.
  std::optional<std::string> hear();
  [[nodiscard]] std::string read_messages() const;

  pid_t pid_ = -1;  // the recorder's, once it has said so
  ScopedFd to_;
  ScopedFd from_;
  ScopedFd messages_;
  std::string heard_;  // what was read and is no whole line
  std::vector<std::string> settings_;
};

struct OwnRecordingOptions {
  std::string path;                       ///< absolute: the recorder has another working folder
  std::string program;                    ///< tidemark's path
  std::vector<std::string> options = {};  ///< further ones of `tidemark recorder`
};

/// One of a process at a time. Where the process is being recorded already, it is a range in that recording, named as
/// the file without its extension. One thread at a time. In a forked child it has ended.
class OwnRecording {
 public:
  OwnRecording() = default;
  OwnRecording(const OwnRecording&) = delete;
  OwnRecording& operator=(const OwnRecording&) = delete;

  /// Fails where it has begun already, in this object or another one, and where nothing can be recorded.
  Result<void> start(const OwnRecordingOptions& options);
  /// The recordings, this process's first; none where it had not begun, or is a range. Fails where one is not whole.
  Result<std::vector<OwnRecordedFile>> stop();
  [[nodiscard]] bool started() const;
  /// start() found this process being recorded already.
  [[nodiscard]] bool is_range() const { return started() && !range_.empty(); }

 private:
  Result<void> begin(const OwnRecordingOptions& options);
  Result<std::vector<OwnRecordedFile>> end();

  pid_t pid_ = 0;  // that began it; 0: nobody
  std::string path_;
  std::string range_;
  std::optional<RecorderProcess> recorder_;
};

/// Finds the library that records, where it is in this process from its start (`tidemark run`) or is waited for
/// (`tidemark run --manual`).
void find_own_control_library();

}  // namespace tidemark
