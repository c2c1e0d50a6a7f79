// The message of a recorder to its readers: the files that are being written. One JSON object on a line, in one
// message:
//
//   {"recordings": [{"pid": 4711, "path": "/data/run.rank0.tide", "rank": 0, "command": "python train.py",
//                    "started_wall_ns": 1795168301328464000, "started_ns": 81328464000}], "left_out": 0}
//
// A flight recorder (--keep) adds "keeps": true, and its latest dumps:
//
//   "dumps": [{"number": 1, "reason": "signal", "request": "", "paths": ["/data/run.tide"], "problem": ""}]
//
// Readers may ask for a dump with a message {"dump": "ID"}; the answer is a dump with that request.
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

/// A dump that a recorder has written, or could not write.
struct LiveDump {
  std::uint64_t number = 0;  ///< from 1, of its recorder
  std::string reason;        ///< "device_oom", "host_oom", "signal", "exit_code", "request"
  std::string request;       ///< of a reader that asked for it; else empty
  std::vector<std::string> paths;
  std::string problem;  ///< why something is missing, a clause; else empty

  bool operator==(const LiveDump&) const = default;
};

struct LiveDumps {
  static constexpr std::size_t kMaxDumps = 8;  ///< the latest
  static constexpr std::size_t kMaxPaths = 16;
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 10;  ///< of all; older ones are left out

  bool keeps = false;  ///< dumps can be asked for
  std::vector<LiveDump> dumps;
};

inline constexpr std::size_t kMaxLiveBytes = std::size_t{64} << 10;  ///< of a message

/// The message, with its line end. Recordings that do not fit are counted as left out.
[[nodiscard]] std::string live_message(std::span<const LiveRecording> recordings, const LiveDumps& dumps = {});

/// std::nullopt if the text is not such a message. Entries without a pid and a path are ignored.
[[nodiscard]] std::optional<std::vector<LiveRecording>> parse_live_message(std::string_view message);
/// Empty if the text is not such a message.
[[nodiscard]] LiveDumps parse_live_dumps(std::string_view message);

/// A reader's request for a dump: `id` is in the answer; at most kMaxDumpRequestBytes.
inline constexpr std::size_t kMaxDumpRequestBytes = 256;
[[nodiscard]] std::string dump_request(std::string_view id);
/// The id; std::nullopt if it is no request.
[[nodiscard]] std::optional<std::string> parse_dump_request(std::string_view message);

}  // namespace tidemark
