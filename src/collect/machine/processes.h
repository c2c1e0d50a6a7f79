// What /proc tells of processes: their names, what is below another one, and whether they hold memory. `root` comes
// before "/proc".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/sample.h"

namespace tidemark {

/// Sets kind and name of a process that a driver lists: `other`, `ended` or `other_namespace`. A driver numbers
/// processes as the host does. In a container such a number may belong to some other process here, so there it counts
/// as `other` only when that process has the GPU open.
void name_process(SampledProcess& process, const std::string& root = "");

/// "python train.py", "python -m torch.distributed.run", "Xorg": the program, and for an interpreter what it runs; no
/// other arguments, which may hold secrets. Empty when there is no such process.
[[nodiscard]] std::string short_command(std::int64_t pid, const std::string& root = "");

/// Whether PIDs here are the host's.
[[nodiscard]] bool in_first_pid_namespace(const std::string& root = "");

/// All descendants of a process, without itself. One that ends meanwhile may be missing with those below it, and so are
/// those whose parent ended: the kernel hands them to another.
[[nodiscard]] std::vector<std::int64_t> descendants_of(std::int64_t pid, const std::string& root = "");

/// Resident pages, from /proc/PID/statm: pages that are shared count in each process. None when it is gone.
[[nodiscard]] std::optional<std::uint64_t> resident_bytes(std::int64_t pid, const std::string& root = "");

/// From /proc/PID/status, some 20 µs: counters that the kernel keeps. All none when the process is gone or has ended.
[[nodiscard]] ProcessPages resident_pages(std::int64_t pid, const std::string& root = "");

struct WalkedPages {
  std::optional<std::uint64_t> pss_bytes;      ///< a page that n processes share counts as 1/n in each
  std::optional<std::uint64_t> private_bytes;  ///< written, and no other process has them
};

/// From /proc/PID/smaps_rollup. The kernel walks all pages for it,
/// some 30 ms for 10 GiB. None when it is gone, or of another user.
[[nodiscard]] WalkedPages walked_pages(std::int64_t pid, const std::string& root = "");

}  // namespace tidemark
