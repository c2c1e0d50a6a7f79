// Processes in /proc: their names, their descendants, and their memory. `root` comes before "/proc".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/sample.h"

namespace tidemark {

/// Sets kind and name of a process that a driver lists: `other`, `ended` or `other_namespace`. A driver uses the host's
/// PIDs. In a container such a PID may be that of an unrelated process, so there a process counts as `other` only if it
/// has the GPU open.
void name_process(SampledProcess& process, const std::string& root = "");

/// "python train.py", "python -m torch.distributed.run", "Xorg": the program, and the script or module for an
/// interpreter; no other arguments, which may hold secrets. Empty if there is no such process.
[[nodiscard]] std::string short_command(std::int64_t pid, const std::string& root = "");

/// Whether this process is in the host's PID namespace.
[[nodiscard]] bool in_first_pid_namespace(const std::string& root = "");

/// All descendants of a process, without itself. If a process ends during the call, it and its descendants may be
/// missing; processes with an ended parent are missing too, because the kernel gives them another parent.
[[nodiscard]] std::vector<std::int64_t> descendants_of(std::int64_t pid, const std::string& root = "");

/// Resident pages, from /proc/PID/statm: shared pages count in each process. std::nullopt if the process is gone.
[[nodiscard]] std::optional<std::uint64_t> resident_bytes(std::int64_t pid, const std::string& root = "");

/// From /proc/PID/status, some 20 µs: the kernel's counters. All std::nullopt if the process is gone or has ended.
[[nodiscard]] ProcessPages resident_pages(std::int64_t pid, const std::string& root = "");

struct WalkedPages {
  std::optional<std::uint64_t> pss_bytes;      ///< a page shared by n processes counts as 1/n in each
  std::optional<std::uint64_t> private_bytes;  ///< written, and not shared with another process
};

/// From /proc/PID/smaps_rollup. The kernel walks all pages for it, some 30 ms for 10 GiB. std::nullopt if the process
/// is gone, or belongs to another user.
[[nodiscard]] WalkedPages walked_pages(std::int64_t pid, const std::string& root = "");

}  // namespace tidemark
