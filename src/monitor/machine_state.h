// The state of a machine while it is watched: the devices, the processes that use them, and the host, each with its
// history. Read by reports, the terminal program, and metrics.
//
// Times are nanoseconds since watching began, of a steady clock. Sizes are bytes. std::nullopt: unknown.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/quantile_sketch.h"
#include "analyze/forecast/forecaster.h"
#include "collect/machine/device_source.h"
#include "collect/machine/host_memory.h"
#include "monitor/watched_usage.h"

namespace tidemark {

/// A number that is read repeatedly.
struct RunningValue {
  std::uint64_t count = 0;
  double average = 0;  ///< kept as such: exact for equal numbers, and never above the highest
  double highest = 0;

  void add(double value) {
    highest = count == 0 || value > highest ? value : highest;
    ++count;
    average += (value - average) / static_cast<double>(count);
  }
  void add(const RunningValue& other) {
    if (other.count == 0) return;
    highest = count == 0 || other.highest > highest ? other.highest : highest;
    count += other.count;
    average += (other.average - average) * (static_cast<double>(other.count) / static_cast<double>(count));
  }
  [[nodiscard]] std::optional<double> mean() const { return count == 0 ? std::nullopt : std::optional(average); }
  [[nodiscard]] std::optional<double> most() const { return count == 0 ? std::nullopt : std::optional(highest); }
};

/// A GPU, a MIG instance, or, on a machine without any, the host's memory.
struct WatchedDevice {
  std::string key;       ///< in options and reports: "0", "0:1" (an instance of GPU 0), "amd-0" beside NVIDIA's, "cpu"
  bool is_host = false;  ///< "cpu"
  DeviceInfo info;       ///< with the total; for the host, only the total
  std::string lost;      ///< why it is no longer read, as a sentence; else empty
  DeviceSample latest;   ///< without time and device
  std::optional<std::uint64_t> sampled_at_ns;            ///< time of `latest`; std::nullopt before the first
  WatchedUsage used;                                     ///< empty if the driver does not report it
  QuantileSketch used_distribution;                      ///< used memory at each sample; can be merged
  RunningValue used_percent;                             ///< of the total
  RunningValue utilization_percent;                      ///< how busy it was
  std::optional<std::vector<SampledProcess>> processes;  ///< from the latest list; std::nullopt if the driver has none
  RiskAssessment risk;                                   ///< at `assessed_at_ns`
  std::optional<std::uint64_t> assessed_at_ns;

  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const { return latest.used_bytes; }
  /// Memory available to programs: the total without the driver's own.
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> free_bytes() const;
};

/// Risk for one process's use of a memory. Its limit is its own memory plus the free memory, as long as others take no
/// more.
struct ProcessRisk {
  RiskAssessment risk;
  std::uint64_t limit_bytes = 0;
};

/// A process's use of a device.
struct ProcessOnDevice {
  std::size_t device = 0;              ///< position in MachineState::devices
  bool held = false;                   ///< it is in the latest list
  std::optional<std::uint64_t> bytes;  ///< from that list; std::nullopt if the driver does not report it
  WatchedUsage used{256};
  std::optional<ProcessRisk> risk = {};  ///< std::nullopt: not assessed
};

struct WatchedProcess {
  std::int64_t pid = -1;  ///< PID reported by the driver
  ProcessKind kind = ProcessKind::other;
  std::string name;  ///< see SampledProcess
  std::uint64_t first_seen_ns = 0;
  std::uint64_t last_seen_ns = 0;
  bool ended = false;  ///< no longer listed
  std::vector<ProcessOnDevice> devices;
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;  ///< read every few seconds
  WatchedUsage rss{256};
  WatchedUsage pss{256};
  std::optional<ProcessRisk> risk = {};  ///< of its RSS; std::nullopt: not assessed
  /// Its role and its pages, read once a second; after its end, without the pages. std::nullopt if it is not among the
  /// processes of this machine that are read.
  std::optional<HostProcess> on_host = {};

  /// Sum over all devices; std::nullopt if no device reports it.
  [[nodiscard]] std::optional<std::uint64_t> device_bytes() const;
};

struct WatchedHost {
  HostMemory memory;
  std::string cgroup_folder;                                ///< empty without control groups
  std::optional<std::int64_t> cgroup_pid;                   ///< the process of that group; std::nullopt: the monitor's
                                                            ///< own
  std::optional<std::uint64_t> cgroup_usage_bytes;          ///< including cached files
  std::optional<std::uint64_t> cgroup_inactive_file_bytes;  ///< part of the usage
  std::optional<std::uint64_t> cgroup_limit_bytes;
  std::optional<std::uint64_t> cgroup_oom_kills;           ///< since the group exists
  MemoryParts cgroup_parts;                                ///< parts of its usage; read once a second
  MemoryParts machine_parts;                               ///< read once a second
  std::optional<std::uint64_t> cgroup_oom_kills_at_start;  ///< at the first sample
  /// Memory counted against limit_bytes(): the control group's, without files that the kernel takes back first, if its
  /// limit is below the machine's memory; else the machine's memory that is not available.
  WatchedUsage used;
  RunningValue used_percent;
  RiskAssessment risk;
  std::optional<std::uint64_t> assessed_at_ns;

  [[nodiscard]] bool limited_by_cgroup() const;
  /// Parts of the memory to which limit_bytes() applies.
  [[nodiscard]] const MemoryParts& parts() const { return limited_by_cgroup() ? cgroup_parts : machine_parts; }
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> free_bytes() const;
  /// In the control group, since watching began.
  [[nodiscard]] std::uint64_t new_oom_kills() const;
};

/// Training steps of a recorded process on one device.
struct ProcessSteps {
  std::int64_t pid = -1;
  std::string device;                ///< WatchedDevice::key; empty if unknown, and for a process without GPUs
  std::uint64_t reserved_bytes = 0;  ///< by its allocator on the device
  std::uint64_t steps = 0;           ///< seen so far; never decreases
};

/// State of the process of MonitorOptions::pid.
enum class WatchedPid : std::uint8_t {
  none = 0,        ///< no process was chosen
  running = 1,     ///< a device lists it, or there are no devices
  not_listed = 2,  ///< no device lists it
  hidden = 3,      ///< no device lists it, but the driver's PIDs are of another namespace: it may be among them
  ended = 4,
};

struct MachineState {
  std::uint64_t began_wall_ns = 0;        ///< since 1970, by the machine's clock at that time
  std::uint64_t now_ns = 0;               ///< at the latest update
  std::uint64_t now_wall_ns = 0;          ///< at the latest update, since 1970, by the machine's clock, which may be
                                          ///< set meanwhile
  std::uint64_t latest_reading_ns = 0;    ///< is_old(): a driver does not answer
  bool devices_known = false;             ///< drivers are loaded; everything else is unknown before
  std::vector<std::string> problems;      ///< drivers that are installed and do not work; sentences
  bool no_gpu = false;                    ///< the only device is the host's memory
  std::vector<std::string> all_keys;      ///< of all devices, chosen or not
  std::vector<std::string> missing_keys;  ///< chosen devices that do not exist
  std::vector<WatchedDevice> devices;     ///< the chosen ones
  std::vector<WatchedProcess> processes;  ///< in order of first_seen_ns; including ended ones
  std::uint64_t forgotten_processes = 0;  ///< ended ones that were removed from the list
  WatchedHost host;
  std::vector<ProcessSteps> steps;  ///< set by MachineMonitor::set_steps()
  WatchedPid watched_pid = WatchedPid::none;

  /// Whether a reading at `time_ns` is old: a driver that answers is read again at every interval.
  [[nodiscard]] bool is_old(std::uint64_t time_ns, std::uint64_t interval_ns) const {
    constexpr std::uint64_t kOldNs = 3'000'000'000;
    return now_ns > time_ns && now_ns - time_ns > std::max(kOldNs, 2 * interval_ns);
  }
  /// Wall time of a moment, since 1970, by the machine's clock at the latest update.
  [[nodiscard]] std::uint64_t wall_ns(std::uint64_t time_ns) const { return now_wall_ns - now_ns + time_ns; }
  /// Whether the host and every device have answered once, or will not.
  [[nodiscard]] bool complete() const;
  /// Whether first readings are still expected: not complete, and started less than ten seconds ago.
  [[nodiscard]] bool is_starting() const;
};

}  // namespace tidemark
