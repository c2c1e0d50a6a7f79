// The verdict that a dump prints below a program's traceback: a short form of `explain` and `table`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ledger/host_ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/usage/table.h"
#include "report/common/terminal.h"

namespace tidemark {

/// Lines of a verdict, including the lines that name its files.
inline constexpr std::size_t kMaxVerdictLines = 10;

/// The kernel killed processes for lack of memory.
struct HostOomFacts {
  std::vector<HostKill> kills;  ///< known ones of the job
  std::uint64_t unexplained_kills = 0;
  std::string cgroup;  ///< folder of the control group; may be empty
};

/// A recording that was written.
struct DumpedRecording {
  std::string path;
  std::optional<std::int64_t> pid;
  std::uint64_t duration_ns = 0;
  std::uint64_t event_count = 0;
  std::uint64_t bytes = 0;
};

/// A change that would have let a failed request succeed.
struct RankedFix {
  std::string change;  ///< "checkpoint the layers (...): model.layers.{0-15}"
  std::string effect;  ///< "saves 20.0 GiB", "saves ~20.0 GiB" of an estimate, "adds 104.0 MiB" of a limit
};
/// "Fixes that would have been enough:". If no training step was complete before the failure, later requests may fail
/// too, and the title says so.
[[nodiscard]] std::string fixes_title(const OomFailure& failure, std::size_t count);
/// Whether a smaller batch is the fix: in a first step without a mistake, a change of one call site lets this request
/// pass, and a later one fails.
[[nodiscard]] bool batch_comes_first(const OomFailure& failure);
/// At most three: changes of the program that would have been enough, what saves most first, then those of settings,
/// limits and the request.
[[nodiscard]] std::vector<RankedFix> ranked_fixes(const OomFailure& failure);
/// "Fixes that would have been enough:" and a numbered line for each of three; empty if none is known. If no single
/// change suffices, the largest savings are listed as such.
[[nodiscard]] std::string fixes_text(const OomFailure& failure, const Terminal& terminal);

/// The latest failed request: its size, cause, largest holders, and fixes. Empty if none failed. `address_space_limit`:
/// of the program in bytes, if there is one; mentioned for requests on the CPU.
[[nodiscard]] std::vector<std::string> device_oom_lines(const Explanation& explanation,
                                                        std::optional<std::uint64_t> address_space_limit);
/// The killed process, the limit, and the largest holders. `held`: the last breakdown of the host in the recording; may
/// be null.
[[nodiscard]] std::vector<std::string> host_oom_lines(const HostOomFacts& facts, const Table* held);
/// For a device with a recording that is too long to be explained at once.
[[nodiscard]] std::string unexplained_oom_line(const std::string& path);
/// Without an out-of-memory error: that the program failed, or what asked for the dump ("SIGUSR1"; empty: nothing);
/// peak and end of each device.
[[nodiscard]] std::vector<std::string> held_lines(const Overview& overview, std::string_view asked);
/// At most `most` lines.
[[nodiscard]] std::vector<std::string> dumped_lines(const std::vector<DumpedRecording>& recordings, std::size_t most);
/// Parts that could not be written, and where they still are.
[[nodiscard]] std::string not_dumped_line(const std::string& error, const std::string& folder);

}  // namespace tidemark
