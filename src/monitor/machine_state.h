// What is known of a machine while it is watched: the devices, the processes that use them, and the host, each with its
// history. Faces read it: reports, a terminal program, metrics.
//
// Times are nanoseconds since watching began, of a clock that is not set. Sizes are bytes. None: not known.
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

/// A number that was read again and again.
struct RunningValue {
  std::uint64_t count = 0;
  double average = 0;  ///< kept as such: that of equal numbers is one of them, and none is above the highest
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
  DeviceInfo info;       ///< with the total; of the host only that
  std::string lost;      ///< why nothing more comes of it, as a sentence; else empty
  DeviceSample latest;   ///< without time and device
  std::optional<std::uint64_t> sampled_at_ns;            ///< `latest`; none before the first
  WatchedUsage used;                                     ///< empty where the driver does not say
  QuantileSketch used_distribution;                      ///< of what was used, at each sample; can be merged
  RunningValue used_percent;                             ///< of the total
  RunningValue utilization_percent;                      ///< how busy it was
  std::optional<std::vector<SampledProcess>> processes;  ///< by the latest list; none where the driver has none
  RiskAssessment risk;                                   ///< as of `assessed_at_ns`
  std::optional<std::uint64_t> assessed_at_ns;

  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const { return latest.used_bytes; }
  /// What programs can have of it: the total without what the driver keeps.
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;
  [[nodiscard]] std::optional<std::uint64_t> free_bytes() const;
};

/// Of what one process has of a memory. It can have what it has and what is free there, as long as others take no more.
struct ProcessRisk {
  RiskAssessment risk;
  std::uint64_t limit_bytes = 0;
};

/// What a process has of a device.
struct ProcessOnDevice {
  std::size_t device = 0;              ///< position in MachineState::devices
  bool held = false;                   ///< the latest list has it
  std::optional<std::uint64_t> bytes;  ///< by that; none where the driver does not say how much
  WatchedUsage used{256};
  std::optional<ProcessRisk> risk = {};  ///< none: not assessed
};

struct WatchedProcess {
  std::int64_t pid = -1;  ///< as the driver numbers it
  ProcessKind kind = ProcessKind::other;
  std::string name;  ///< as in SampledProcess
  std::uint64_t first_seen_ns = 0;
  std::uint64_t last_seen_ns = 0;
  bool ended = false;  ///< is listed no more
  std::vector<ProcessOnDevice> devices;
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> pss_bytes;  ///< read every few seconds
  WatchedUsage rss{256};
  WatchedUsage pss{256};
  std::optional<ProcessRisk> risk = {};  ///< of its RSS; none: not assessed
  /// What it is there for, and its pages, as read once a second; once it has ended, without these. None where it is not
  /// among the processes of this machine that are looked at.
  std::optional<HostProcess> on_host = {};

  /// Of all devices; none where none says.
  [[nodiscard]] std::optional<std::uint64_t> device_bytes() const;
};

struct WatchedHost {
  HostMemory memory;
  std::string cgroup_folder;                                ///< empty: there are no control groups
  std::optional<std::int64_t> cgroup_pid;                   ///< the process whose it is; none: that of who watches
  std::optional<std::uint64_t> cgroup_usage_bytes;          ///< with cached files
  std::optional<std::uint64_t> cgroup_inactive_file_bytes;  ///< of that
  std::optional<std::uint64_t> cgroup_limit_bytes;
  std::optional<std::uint64_t> cgroup_oom_kills;           ///< since the group exists
  MemoryParts cgroup_parts;                                ///< of what it uses; read once a second
  MemoryParts machine_parts;                               ///< likewise
  std::optional<std::uint64_t> cgroup_oom_kills_at_start;  ///< at the first sample
  /// What counts against limit_bytes(): of the control group, without files that the kernel takes back first, where
  /// its limit is below the machine's memory; else what of the machine's memory is not available.
  WatchedUsage used;
  RunningValue used_percent;
  RiskAssessment risk;
  std::optional<std::uint64_t> assessed_at_ns;

  [[nodiscard]] bool limited_by_cgroup() const;
  /// Of the memory that limit_bytes() is of.
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
  std::string device;  ///< WatchedDevice::key; empty where it cannot be told, and of a process without GPUs
  std::uint64_t reserved_bytes = 0;  ///< that its allocator has of the device
  std::uint64_t steps = 0;           ///< that were seen so far; never fewer
};

/// Whether the process of MonitorOptions::pid is there.
enum class WatchedPid : std::uint8_t {
  none = 0,        ///< no process was asked for
  running = 1,     ///< and devices list it, or there are none
  not_listed = 2,  ///< no device lists it
  hidden = 3,      ///< likewise, but the driver's PIDs are those of another namespace: it may be among them
  ended = 4,
};

struct MachineState {
  std::uint64_t began_wall_ns = 0;        ///< since 1970, as the machine's clock then was
  std::uint64_t now_ns = 0;               ///< of the latest update
  std::uint64_t now_wall_ns = 0;          ///< likewise, since 1970: the machine's clock, which may be set meanwhile
  std::uint64_t latest_reading_ns = 0;    ///< is_old(): a driver does not answer
  bool devices_known = false;             ///< drivers are loaded; nothing else is known before
  std::vector<std::string> problems;      ///< of drivers that are there and do not work; sentences
  bool no_gpu = false;                    ///< the only device is the host's memory
  std::vector<std::string> all_keys;      ///< of all devices there are, chosen or not
  std::vector<std::string> missing_keys;  ///< that were chosen and are not there
  std::vector<WatchedDevice> devices;     ///< the chosen ones
  std::vector<WatchedProcess> processes;  ///< in order of first_seen_ns; also those that have ended
  std::uint64_t forgotten_processes = 0;  ///< ended ones that are not among these any more
  WatchedHost host;
  std::vector<ProcessSteps> steps;  ///< as MachineMonitor::set_steps() was told
  WatchedPid watched_pid = WatchedPid::none;

  /// Whether what was read at `time_ns` is old: a driver that answers is read again at every interval.
  [[nodiscard]] bool is_old(std::uint64_t time_ns, std::uint64_t interval_ns) const {
    constexpr std::uint64_t kOldNs = 3'000'000'000;
    return now_ns > time_ns && now_ns - time_ns > std::max(kOldNs, 2 * interval_ns);
  }
  /// Wall time, since 1970, of a moment: by the machine's clock as it was at the latest update.
  [[nodiscard]] std::uint64_t wall_ns(std::uint64_t time_ns) const { return now_wall_ns - now_ns + time_ns; }
  /// Whether the host and every device have answered once, or will not.
  [[nodiscard]] bool complete() const;
  /// Whether first answers may come soon: not complete, and begun less than ten seconds ago.
  [[nodiscard]] bool is_starting() const;
};

}  // namespace tidemark
