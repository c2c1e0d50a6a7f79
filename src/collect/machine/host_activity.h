// How busy a host is: its processors, a disk's space, its network; and what this process takes of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tidemark {

/// Counters and levels at one time. None where the kernel does not say.
struct HostActivity {
  std::chrono::steady_clock::time_point at;
  std::optional<std::uint64_t> cpu_busy_ticks;   ///< of all processors since boot: neither idle nor waiting for a disk
  std::optional<std::uint64_t> cpu_total_ticks;  ///< likewise, all
  std::optional<std::uint64_t> process_cpu_ns;   ///< that this process has used
  std::optional<std::uint64_t> disk_total_bytes;
  std::optional<std::uint64_t> disk_used_bytes;
  std::optional<std::uint64_t> disk_available_bytes;  ///< to users who are not root
  std::optional<std::uint64_t> received_bytes;        ///< by all network interfaces but the loopback, since boot
  std::optional<std::uint64_t> sent_bytes;
};

/// `disk`: a path on the file system that is meant. `root` comes before "/proc". Some 50 µs; any thread.
[[nodiscard]] HostActivity read_host_activity(const std::string& disk, const std::string& root = "");

/// Of the processors, what was busy between two readings, 0 to 100; none where it is not known.
[[nodiscard]] std::optional<double> cpu_percent(const HostActivity& before, const HostActivity& now);
/// What this process used of one processor meanwhile: 200 where it kept two busy.
[[nodiscard]] std::optional<double> process_cpu_percent(const HostActivity& before, const HostActivity& now);
/// Of what users can have of the disk, 0 to 100, as df says it.
[[nodiscard]] std::optional<double> disk_percent(const HostActivity& now);

}  // namespace tidemark
