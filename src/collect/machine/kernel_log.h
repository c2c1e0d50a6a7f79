// What the kernel's log says of processes that it killed for lack of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "trace/sample.h"

namespace tidemark {

/// A process that the OOM killer chose. Its memory as the kernel prints it.
struct LoggedKill {
  std::int64_t pid = -1;  ///< as the host numbers it
  KillScope scope = KillScope::unknown;
  ProcessPages pages;  ///< without `rss_bytes` where a part is missing
};

/// None where the line is of something else: "Memory cgroup out of memory: Killed process 7 (python) total-vm:…".
[[nodiscard]] std::optional<LoggedKill> parse_kill(const std::string& line);

/// Reads /dev/kmsg from now on, where that is allowed (root, or kernel.dmesg_restrict=0) and PIDs here are the host's,
/// which the log uses. Not thread-safe.
class KernelLog {
 public:
  explicit KernelLog(const std::string& root = "");

  [[nodiscard]] bool readable() const { return static_cast<bool>(fd_); }
  /// What was logged since the last call; never waits. At most some thousand lines are looked at: more are left to the
  /// next call.
  [[nodiscard]] std::vector<LoggedKill> read();

 private:
  ScopedFd fd_;
};

}  // namespace tidemark
