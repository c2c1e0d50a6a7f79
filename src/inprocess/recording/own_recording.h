// A recording of this process, begun and ended by the process itself.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inprocess/recording/recorder_process.h"

namespace tidemark {

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
