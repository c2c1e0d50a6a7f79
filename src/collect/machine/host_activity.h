// How busy a host is: its processors, a disk's space, its network; and how much of them this process uses.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tidemark {

/// Counters and levels at one time. std::nullopt if the kernel does not report a value.
struct HostActivity {
  std::chrono::steady_clock::time_point at;
  std::optional<std::uint64_t> cpu_busy_ticks;   ///< all processors since boot, neither idle nor waiting for a disk
  std::optional<std::uint64_t> cpu_total_ticks;  ///< all processors since boot
  std::optional<std::uint64_t> process_cpu_ns;   ///< processor time used by this process
  std::optional<std::uint64_t> disk_total_bytes;
  std::optional<std::uint64_t> disk_used_bytes;
  std::optional<std::uint64_t> disk_available_bytes;  ///< to users who are not root
  std::optional<std::uint64_t> received_bytes;        ///< by all network interfaces but the loopback, since boot
  std::optional<std::uint64_t> sent_bytes;
};

/// `disk`: any path on the file system to measure. `root` comes before "/proc". Some 50 µs; any thread.
[[nodiscard]] HostActivity read_host_activity(const std::string& disk, const std::string& root = "");

/// Share of processor time that was busy between two readings, 0 to 100; std::nullopt if unknown.
[[nodiscard]] std::optional<double> cpu_percent(const HostActivity& before, const HostActivity& now);
/// Processor time of this process between two readings, in percent of one processor: 200 if it kept two busy.
[[nodiscard]] std::optional<double> process_cpu_percent(const HostActivity& before, const HostActivity& now);
/// Used share of the disk space available to users, 0 to 100, as df prints it.
[[nodiscard]] std::optional<double> disk_percent(const HostActivity& now);

}  // namespace tidemark
