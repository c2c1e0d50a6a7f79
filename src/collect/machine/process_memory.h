// The memory of one process, as the kernel counts its pages. `root` comes before "/proc".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/sample.h"

namespace tidemark {

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
