// The message of a recorder to its readers: the files that are being written. One JSON object on a line, in one
// message:
//
//   {"recordings": [{"pid": 4711, "path": "/data/run.rank0.tide", "rank": 0, "command": "python train.py",
//                    "started_wall_ns": 1795168301328464000, "started_ns": 81328464000}], "left_out": 0}
//
// Readers ignore unknown keys. The content of a recording is in its file alone.
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

/// A recording in progress.
struct LiveRecording {
  pid_t pid = 0;
  std::string path;                   ///< the file that is being written now; absolute
  std::optional<std::int32_t> rank;   ///< std::nullopt if the process has no rank
  std::string command;                ///< "python train.py": without other arguments, which may hold secrets
  std::uint64_t started_wall_ns = 0;  ///< since 1970 UTC
  /// Start on the recorder's own clock, to compare its recordings; std::nullopt: an older recorder.
  std::optional<std::uint64_t> started_ns = {};

  bool operator==(const LiveRecording&) const = default;
};

inline constexpr std::size_t kMaxLiveBytes = std::size_t{64} << 10;  ///< of a message

/// The message, with its line end. Recordings that do not fit are counted as left out.
[[nodiscard]] std::string live_message(std::span<const LiveRecording> recordings);

/// std::nullopt if the text is not such a message. Entries without a pid and a path are ignored.
[[nodiscard]] std::optional<std::vector<LiveRecording>> parse_live_message(std::string_view message);

}  // namespace tidemark
