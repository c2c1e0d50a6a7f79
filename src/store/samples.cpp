#include "store/samples.h"

#include <algorithm>

namespace tidemark {
namespace {

void add_time(std::vector<std::uint64_t>& times, std::uint64_t time_ns) {
  times.push_back(times.empty() ? time_ns : std::max(times.back(), time_ns));
}

/// Adds a record to its column.
struct Adder {
  Samples& samples;

  void operator()(const SampledDevice& device) const { samples.devices.emplace_back().device = device; }

  void operator()(const DeviceSample& sample) const {
    DeviceSeries& series = samples.devices[sample.device.value];
    add_time(series.time_ns, sample.time_ns);
    series.used_bytes.push_back(sample.used_bytes);
    series.driver_reserved_bytes.push_back(sample.driver_reserved_bytes);
    series.utilization_percent.push_back(sample.utilization_percent);
    series.temperature_celsius.push_back(sample.temperature_celsius);
    series.power_milliwatts.push_back(sample.power_milliwatts);
  }

  void operator()(const DeviceProcessesSample& sample) const {
    std::vector<DeviceProcessesSample>& processes = samples.devices[sample.device.value].processes;
    const std::uint64_t before = processes.empty() ? 0 : processes.back().time_ns;
    processes.push_back(sample);
    processes.back().time_ns = std::max(before, sample.time_ns);
  }

  void operator()(const HostSample& sample) const {
    HostSeries& series = samples.host;
    add_time(series.time_ns, sample.time_ns);
    series.rss_bytes.push_back(sample.rss_bytes);
    series.pss_bytes.push_back(sample.pss_bytes);
    series.job_processes.push_back(sample.job_processes);
    series.job_rss_bytes.push_back(sample.job_rss_bytes);
    series.job_pss_bytes.push_back(sample.job_pss_bytes);
    series.cgroup_usage_bytes.push_back(sample.cgroup_usage_bytes);
    series.cgroup_limit_bytes.push_back(sample.cgroup_limit_bytes);
    series.cgroup_oom_kills.push_back(sample.cgroup_oom_kills);
    series.anon_bytes.push_back(sample.anon_bytes);
    series.file_bytes.push_back(sample.file_bytes);
    series.shmem_bytes.push_back(sample.shmem_bytes);
    series.swap_bytes.push_back(sample.swap_bytes);
    series.locked_bytes.push_back(sample.locked_bytes);
    series.pinned_bytes.push_back(sample.pinned_bytes);
    series.job_anon_bytes.push_back(sample.job_anon_bytes);
    series.job_file_bytes.push_back(sample.job_file_bytes);
    series.job_shmem_bytes.push_back(sample.job_shmem_bytes);
    series.job_swap_bytes.push_back(sample.job_swap_bytes);
    series.machine_available_bytes.push_back(sample.machine_available_bytes);
  }

  void operator()(const HostPartsSample& sample) const {
    const std::uint64_t before = samples.host_parts.empty() ? 0 : samples.host_parts.back().time_ns;
    samples.host_parts.push_back(sample);
    samples.host_parts.back().time_ns = std::max(before, sample.time_ns);
  }

  void operator()(const KilledProcess& killed) const { samples.killed.push_back(killed); }

  void operator()(const SlowDriverCall& call) const { samples.slow_calls.push_back(call); }
};

}  // namespace

HostSample HostSeries::at(std::size_t n) const {
  return {time_ns[n],          rss_bytes[n],       pss_bytes[n],          job_processes[n],
          job_rss_bytes[n],    job_pss_bytes[n],   cgroup_usage_bytes[n], cgroup_limit_bytes[n],
          cgroup_oom_kills[n], anon_bytes[n],      file_bytes[n],         shmem_bytes[n],
          swap_bytes[n],       locked_bytes[n],    pinned_bytes[n],       job_anon_bytes[n],
          job_file_bytes[n],   job_shmem_bytes[n], job_swap_bytes[n],     machine_available_bytes[n]};
}

void Samples::add(const SampleRecord& record) {
  std::visit(Adder{*this}, record);
}

std::optional<std::size_t> latest_until(const std::vector<std::uint64_t>& times, std::uint64_t time_ns) {
  const auto after = std::upper_bound(times.begin(), times.end(), time_ns);
  if (after == times.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - times.begin()) - 1;
}

}  // namespace tidemark
