// The processes below another one, and the memory that processes hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidemark {

/// All descendants of a process, without itself. One that ends meanwhile may be missing with those below it, and so are
/// those whose parent ended: the kernel hands them to another. `root` comes before "/proc".
[[nodiscard]] std::vector<std::int64_t> descendants_of(std::int64_t pid, const std::string& root = "");

/// Resident pages, from /proc/PID/statm: pages that are shared count in each process. None when it is gone.
[[nodiscard]] std::optional<std::uint64_t> resident_bytes(std::int64_t pid, const std::string& root = "");

/// Proportional set size, from /proc/PID/smaps_rollup: a page shared by n processes counts as 1/n in each. The kernel
/// walks all pages for it, some 30 ms for 10 GiB. None when it is gone, or of another user.
[[nodiscard]] std::optional<std::uint64_t> proportional_bytes(std::int64_t pid, const std::string& root = "");

}  // namespace tidemark
