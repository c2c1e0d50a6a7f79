// What a recorder tells its readers: which files are being written. One JSON object on a line, whole in one message:
//
//   {"recordings": [{"pid": 4711, "path": "/data/run.rank0.tide", "rank": 0, "command": "python train.py",
//                    "started_wall_ns": 1795168301328464000, "started_ns": 81328464000}], "left_out": 0}
//
// Keys that a reader does not know are passed over. What happens in a recording is in its file alone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

/// The recording of a process that is under way.
struct LiveRecording {
  pid_t pid = 0;
  std::string path;                   ///< of the file that is being written now; absolute
  std::optional<std::int32_t> rank;   ///< none where the process has none
  std::string command;                ///< "python train.py": without other arguments, which may hold secrets
  std::uint64_t started_wall_ns = 0;  ///< since 1970 UTC
  /// Likewise on the recorder's own clock, by which its recordings compare; none: an older recorder.
  std::optional<std::uint64_t> started_ns = {};

  bool operator==(const LiveRecording&) const = default;
};

inline constexpr std::size_t kMaxLiveBytes = std::size_t{64} << 10;  ///< of a message

/// The message, with its line end. Recordings that do not fit are counted as left out.
[[nodiscard]] std::string live_message(std::span<const LiveRecording> recordings);

/// None for what is no such message. Entries without a pid and a path are passed over.
[[nodiscard]] std::optional<std::vector<LiveRecording>> parse_live_message(std::string_view message);

}  // namespace tidemark
