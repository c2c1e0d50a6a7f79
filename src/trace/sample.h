// Samples of devices and of the host, taken by the recorder in addition to the events, on the events' clock.
//
// Unknown text is empty, unknown numbers are nullopt. Times as in Event. A recording contains the devices that its
// process could use, including other vendors' devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "base/ids.h"
#include "trace/host_sample.h"

namespace tidemark {

using SampledDeviceId = Id<struct SampledDeviceTag>;  ///< position among the SampledDevice records

/// A device that samples are about. Comes before them.
struct SampledDevice {
  std::string vendor;                        ///< "nvidia", "amd", "intel"
  std::uint32_t index = 0;                   ///< as the vendor's tool numbers it, in MIG instances within their GPU
  std::optional<std::uint32_t> instance_of;  ///< of a MIG instance: its GPU's index
  /// N when the recorded process calls it cuda:N, by the environment that it was started with. A program that sets
  /// CUDA_VISIBLE_DEVICES itself may number otherwise: then DeviceProcessesSample lists the process on another device.
  std::optional<std::uint32_t> cuda_index;
  std::string name;
  std::string uuid;
  std::string bus_id;  ///< PCI address, "0000:65:00.0"
  std::optional<std::uint64_t> total_bytes;

  bool operator==(const SampledDevice&) const = default;
};

/// A device at one time.
struct DeviceSample {
  std::uint64_t time_ns = 0;
  SampledDeviceId device;
  std::optional<std::uint64_t> used_bytes;             ///< by all processes and contexts
  std::optional<std::uint64_t> driver_reserved_bytes;  ///< kept by the driver; if nullopt, `used_bytes` may include it
  std::optional<std::uint32_t> utilization_percent;
  std::optional<std::int32_t> temperature_celsius;
  std::optional<std::uint32_t> power_milliwatts;

  bool operator==(const DeviceSample&) const = default;
};

enum class ProcessKind : std::uint8_t {
  recorded = 0,         ///< the process of this recording
  job = 1,              ///< another process below the same `tidemark run`
  other = 2,            ///< some other process of this machine
  ended = 3,            ///< ended before its name was read
  other_namespace = 4,  ///< a PID of another PID namespace: of another container, or of the job as the host numbers it
};
/// Stable names for machines.
inline constexpr EnumName<ProcessKind> kProcessKindNames[] = {
    {ProcessKind::recorded, "recorded"},
    {ProcessKind::job, "job"},
    {ProcessKind::other, "other"},
    {ProcessKind::ended, "ended"},
    {ProcessKind::other_namespace, "other_namespace"},
};
[[nodiscard]] constexpr std::string_view name_of(ProcessKind value) {
  return name_in(kProcessKindNames, value);
}

/// A process that held memory of a device.
struct SampledProcess {
  std::int64_t pid = -1;  ///< as the driver numbers it
  ProcessKind kind = ProcessKind::other;
  std::optional<std::uint64_t> bytes;
  std::string name;  ///< "python train.py"; empty for `ended` and `other_namespace`

  bool operator==(const SampledProcess&) const = default;
};

/// All processes of a device at one time.
struct DeviceProcessesSample {
  std::uint64_t time_ns = 0;
  SampledDeviceId device;
  std::vector<SampledProcess> processes;

  bool operator==(const DeviceProcessesSample&) const = default;
};

/// The host at one time. RSS counts pages that processes share in each of them, PSS once in all.
struct HostSample {
  std::uint64_t time_ns = 0;
  std::optional<std::uint64_t> rss_bytes;      ///< of the recorded process
  std::optional<std::uint64_t> pss_bytes;      ///< proportional set size of the recorded process; read more rarely
  std::optional<std::uint32_t> job_processes;  ///< below `tidemark run`
  std::optional<std::uint64_t> job_rss_bytes;
  std::optional<std::uint64_t> job_pss_bytes;
  std::optional<std::uint64_t> cgroup_usage_bytes;  ///< of the control group with the lowest limit around the recorder
  std::optional<std::uint64_t> cgroup_limit_bytes;  ///< nullopt also without a limit
  std::optional<std::uint64_t> cgroup_oom_kills;    ///< since the group exists
  // RSS of the recorded process by kind of page: anonymous memory, files and shared memory.
  std::optional<std::uint64_t> anon_bytes = {};
  std::optional<std::uint64_t> file_bytes = {};
  std::optional<std::uint64_t> shmem_bytes = {};
  std::optional<std::uint64_t> swap_bytes = {};    ///< of the recorded process, beyond its RSS
  std::optional<std::uint64_t> locked_bytes = {};  ///< by mlock()
  std::optional<std::uint64_t> pinned_bytes = {};  ///< by drivers that report it to the kernel; CUDA's is not included
  // The sums over the job's processes, as job_rss_bytes.
  std::optional<std::uint64_t> job_anon_bytes = {};
  std::optional<std::uint64_t> job_file_bytes = {};
  std::optional<std::uint64_t> job_shmem_bytes = {};
  std::optional<std::uint64_t> job_swap_bytes = {};
  std::optional<std::uint64_t> machine_available_bytes = {};  ///< memory available to programs without swapping

  bool operator==(const HostSample&) const = default;
};

/// A long call of the recorded process that reserved memory from the CUDA driver or released it: the used bytes of
/// samples taken meanwhile do not match the events.
struct SlowDriverCall {
  std::uint64_t time_ns = 0;  ///< when it returned
  std::uint64_t duration_ns = 0;

  /// Whether the call was under way at a time.
  [[nodiscard]] bool covers(std::uint64_t at_ns) const { return at_ns <= time_ns && time_ns - at_ns <= duration_ns; }

  bool operator==(const SlowDriverCall&) const = default;
};

/// In the order of their kinds in files (format::SampleKind).
using SampleRecord = std::variant<SampledDevice, DeviceSample, DeviceProcessesSample, HostSample, SlowDriverCall,
                                  HostPartsSample, KilledProcess>;

/// Time of reading; 0 for a device, which precedes all its records.
[[nodiscard]] inline std::uint64_t time_of(const SampleRecord& record) {
  return std::visit(
      [](const auto& fields) {
        if constexpr (requires { fields.time_ns; }) {
          return fields.time_ns;
        } else {
          return std::uint64_t{0};
        }
      },
      record);
}

}  // namespace tidemark
