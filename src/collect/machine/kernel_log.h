// Reads the kernel's log for processes that it killed for lack of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "trace/sample.h"

namespace tidemark {

/// A process that the OOM killer chose, with its memory as the kernel prints it.
struct LoggedKill {
  std::int64_t pid = -1;  ///< in the host's PID namespace
  KillScope scope = KillScope::unknown;
  ProcessPages pages;  ///< without `rss_bytes` if a part is missing
};

/// Parses "Memory cgroup out of memory: Killed process 7 (python) total-vm:…"; std::nullopt for other lines.
[[nodiscard]] std::optional<LoggedKill> parse_kill(const std::string& line);

/// Reads new lines of /dev/kmsg, if that is allowed (root, or kernel.dmesg_restrict=0) and this process is in the
/// host's PID namespace, which the log uses. Not thread-safe.
class KernelLog {
 public:
  explicit KernelLog(const std::string& root = "");

  [[nodiscard]] bool readable() const { return static_cast<bool>(fd_); }
  /// The kills logged since the last call; never waits. Reads at most a few thousand lines; the next call reads the
  /// rest.
  [[nodiscard]] std::vector<LoggedKill> read();

 private:
  ScopedFd fd_;
};

}  // namespace tidemark
