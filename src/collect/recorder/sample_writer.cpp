#include "collect/recorder/sample_writer.h"

#include <utility>

#include "collect/machine/visible_devices.h"

namespace tidemark {
namespace {

/// A value that is not known adds nothing.
void add_to(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

}  // namespace

void SampleWriter::add(const Reading& reading) {
  std::visit([this](const auto& kind) { write(kind); }, reading);
}

void SampleWriter::write(const DevicesFound& found) {
  const VisibleDevices seen = visible_devices_of(pid_, found.devices);
  std::uint32_t written = 0;
  ids_.clear();
  for (std::size_t n = 0; n < found.devices.size(); ++n) {
    const DeviceInfo& info = found.devices[n];
    const bool hidden = info.vendor == "nvidia" && !seen.visible[n];
    ids_.push_back(hidden ? std::nullopt : std::optional(SampledDeviceId{written}));
    if (hidden) continue;
    ++written;
    writer_.sample(SampledDevice{info.vendor, info.index, info.instance_of, seen.ordinals[n], info.name, info.uuid,
                                 info.bus_id, found.total_bytes[n]});
  }
}

void SampleWriter::write(const DeviceReadingAt& at) {
  const auto id = id_of(at.device);
  if (!id || at.ticks < start_ticks_) return;
  const DeviceReading& reading = at.reading;
  writer_.sample(DeviceSample{time_ns(at.ticks), *id, reading.used_bytes, reading.driver_reserved_bytes,
                              reading.utilization_percent, reading.temperature_celsius, reading.power_milliwatts});
}

void SampleWriter::write(const DeviceProcessesAt& at) {
  const auto id = id_of(at.device);
  if (!id || at.ticks < start_ticks_) return;
  DeviceProcessesSample sample{time_ns(at.ticks), *id, {}};
  sample.processes.reserve(at.processes.size());
  for (const NamedProcess& process : at.processes) {
    sample.processes.push_back({process.process.pid, kind_of(process), process.process.bytes, process.who.name});
  }
  writer_.sample(std::move(sample));
}

void SampleWriter::write(const DeviceLost& lost) {
  if (id_of(lost.device)) writer_.loss({QualityId::device_lost, 1, lost.why});
}

void SampleWriter::write(const HostReadingAt& at) {
  if (at.ticks < start_ticks_) return;
  HostSample sample;
  sample.time_ns = time_ns(at.ticks);
  if (!at.processes.empty()) sample.job_processes = static_cast<std::uint32_t>(at.processes.size());
  for (const ProcessMemory& process : at.processes) {
    add_to(sample.job_rss_bytes, process.rss_bytes);
    add_to(sample.job_pss_bytes, process.pss_bytes);
    if (process.pid != pid_) continue;
    sample.rss_bytes = process.rss_bytes;
    sample.pss_bytes = process.pss_bytes;
  }
  sample.cgroup_usage_bytes = at.cgroup.usage_bytes;
  sample.cgroup_limit_bytes = at.cgroup_limit_bytes;
  sample.cgroup_oom_kills = at.cgroup.oom_kills;
  writer_.sample(sample);
}

std::optional<SampledDeviceId> SampleWriter::id_of(std::size_t device) const {
  return device < ids_.size() ? ids_[device] : std::nullopt;
}

ProcessKind SampleWriter::kind_of(const NamedProcess& process) const {
  switch (process.who.kind) {
    case ProcessName::Kind::ended:
      return ProcessKind::ended;
    case ProcessName::Kind::elsewhere:
      return ProcessKind::other_namespace;
    case ProcessName::Kind::known:
      break;
  }
  if (process.process.pid == pid_) return ProcessKind::recorded;
  return process.of_job ? ProcessKind::job : ProcessKind::other;
}

}  // namespace tidemark
