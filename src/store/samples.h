// The recorder's samples of devices and of the host during the run, as columns. Times as in Store.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/sample.h"

namespace tidemark {

/// One device. Entry n of every column belongs to time_ns[n]; times never decrease.
struct DeviceSeries {
  SampledDevice device;
  std::vector<std::uint64_t> time_ns;
  std::vector<std::optional<std::uint64_t>> used_bytes;
  std::vector<std::optional<std::uint64_t>> driver_reserved_bytes;
  std::vector<std::optional<std::uint32_t>> utilization_percent;
  std::vector<std::optional<std::int32_t>> temperature_celsius;
  std::vector<std::optional<std::uint32_t>> power_milliwatts;
  std::vector<DeviceProcessesSample> processes;  ///< with separate times, which also never decrease
};

/// The host: entry n of every column belongs to time_ns[n]; times never decrease. Meanings as in HostSample.
struct HostSeries {
  std::vector<std::uint64_t> time_ns;
  std::vector<std::optional<std::uint64_t>> rss_bytes;
  std::vector<std::optional<std::uint64_t>> pss_bytes;
  std::vector<std::optional<std::uint32_t>> job_processes;
  std::vector<std::optional<std::uint64_t>> job_rss_bytes;
  std::vector<std::optional<std::uint64_t>> job_pss_bytes;
  std::vector<std::optional<std::uint64_t>> cgroup_usage_bytes;
  std::vector<std::optional<std::uint64_t>> cgroup_limit_bytes;
  std::vector<std::optional<std::uint64_t>> cgroup_oom_kills;
  std::vector<std::optional<std::uint64_t>> anon_bytes;
  std::vector<std::optional<std::uint64_t>> file_bytes;
  std::vector<std::optional<std::uint64_t>> shmem_bytes;
  std::vector<std::optional<std::uint64_t>> swap_bytes;
  std::vector<std::optional<std::uint64_t>> locked_bytes;
  std::vector<std::optional<std::uint64_t>> pinned_bytes;
  std::vector<std::optional<std::uint64_t>> job_anon_bytes;
  std::vector<std::optional<std::uint64_t>> job_file_bytes;
  std::vector<std::optional<std::uint64_t>> job_shmem_bytes;
  std::vector<std::optional<std::uint64_t>> job_swap_bytes;
  std::vector<std::optional<std::uint64_t>> machine_available_bytes;

  /// Entry n of every column.
  [[nodiscard]] HostSample at(std::size_t n) const;
};

struct Samples {
  std::vector<DeviceSeries> devices;  ///< by SampledDeviceId
  HostSeries host;
  std::vector<HostPartsSample> host_parts;  ///< times never decrease
  std::vector<KilledProcess> killed;        ///< in the order of detection
  std::vector<SlowDriverCall> slow_calls;   ///< in the order of return, approximately

  /// Appends a record, as TraceReader gives them. A time before the one before it counts as that one.
  void add(const SampleRecord& record);
};

/// The last entry of a column of times that is not after `time_ns`; nullopt if all are.
[[nodiscard]] std::optional<std::size_t> latest_until(const std::vector<std::uint64_t>& times, std::uint64_t time_ns);

}  // namespace tidemark
