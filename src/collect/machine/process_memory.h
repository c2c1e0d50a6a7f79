// The memory of one process, as the kernel counts its pages. `root` comes before "/proc".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/sample.h"

namespace tidemark {

/// From /proc/PID/status, some 20 µs: counters that the kernel keeps. All none when the process is gone or has ended.
[[nodiscard]] ProcessPages resident_pages(std::int64_t pid, const std::string& root = "");

struct ProportionalBytes {
  std::optional<std::uint64_t> all;
  std::optional<std::uint64_t> anon;  ///< of anonymous pages
};

/// From /proc/PID/smaps_rollup: a page shared by n processes counts as 1/n in each. The kernel walks all pages for it,
/// some 30 ms for 10 GiB. None when it is gone, or of another user.
[[nodiscard]] ProportionalBytes proportional_pages(std::int64_t pid, const std::string& root = "");

}  // namespace tidemark
