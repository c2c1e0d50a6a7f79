#include "collect/recorder/sample_writer.h"

#include <utility>

#include "collect/machine/visible_devices.h"

namespace tidemark {

void SampleWriter::add(const Reading& reading) {
  std::visit([&](const auto& kind) { write(reading.ticks, kind); }, reading.what);
}

void SampleWriter::write(std::uint64_t /*ticks*/, const DevicesFound& found) {
  const VisibleDevices seen = visible_devices_of(pid_, found.devices);
  std::uint32_t written = 0;
  ids_.clear();
  for (std::size_t n = 0; n < found.devices.size(); ++n) {
    const bool hidden = found.devices[n].vendor == "nvidia" && !seen.visible[n];
    ids_.push_back(hidden ? std::nullopt : std::optional(SampledDeviceId{written}));
    if (hidden) continue;
    ++written;
    SampledDevice device = found.devices[n];
    device.cuda_index = seen.ordinals[n];
    writer_.sample(std::move(device));
  }
}

void SampleWriter::write(std::uint64_t ticks, DeviceSample sample) {
  const auto id = id_of(sample.device);
  if (!id || ticks < start_ticks_) return;
  sample.device = *id;
  sample.time_ns = time_ns(ticks);
  writer_.sample(sample);
}

void SampleWriter::write(std::uint64_t ticks, DeviceProcessesSample sample) {
  const auto id = id_of(sample.device);
  if (!id || ticks < start_ticks_) return;
  sample.device = *id;
  sample.time_ns = time_ns(ticks);
  for (SampledProcess& process : sample.processes) {
    const bool known = process.kind == ProcessKind::other || process.kind == ProcessKind::job;
    if (known && process.pid == pid_) process.kind = ProcessKind::recorded;
  }
  writer_.sample(std::move(sample));
}

void SampleWriter::write(std::uint64_t /*ticks*/, const DeviceLost& lost) {
  if (id_of(lost.device)) writer_.loss({QualityId::device_lost, 1, lost.why});
}

void SampleWriter::write(std::uint64_t ticks, const HostReading& host) {
  if (ticks < start_ticks_) return;
  HostSample sample = host.sample;
  sample.time_ns = time_ns(ticks);
  for (const ProcessMemory& process : host.processes) {
    if (process.pid != pid_) continue;
    sample.rss_bytes = process.rss_bytes;
    sample.pss_bytes = process.pss_bytes;
  }
  writer_.sample(sample);
}

std::optional<SampledDeviceId> SampleWriter::id_of(SampledDeviceId position) const {
  return position.value < ids_.size() ? ids_[position.value] : std::nullopt;
}

}  // namespace tidemark
