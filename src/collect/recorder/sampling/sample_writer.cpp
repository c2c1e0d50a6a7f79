#include "collect/recorder/sampling/sample_writer.h"

#include <algorithm>
#include <utility>

#include "collect/machine/visible_devices.h"

namespace tidemark {
namespace {

// In jobs with more processes, those with less memory are summed.
constexpr std::size_t kMaxProcesses = 32;

// Most resident bytes first; the recorded process is always kept.
void keep_largest(HostPartsSample& sample) {
  std::stable_sort(sample.processes.begin(), sample.processes.end(),
                   [](const HostProcess& left, const HostProcess& right) {
                     return left.pages.rss_bytes.value_or(0) > right.pages.rss_bytes.value_or(0);
                   });
  if (sample.processes.size() <= kMaxProcesses) return;
  const auto rest = sample.processes.begin() + kMaxProcesses;
  const auto recorded =
      std::find_if(rest, sample.processes.end(), [](const HostProcess& process) { return process.recorded; });
  if (recorded != sample.processes.end()) std::iter_swap(recorded, rest - 1);
  for (auto process = rest; process != sample.processes.end(); ++process) sample.other_pages.add(process->pages);
  sample.other_processes = static_cast<std::uint32_t>(sample.processes.end() - rest);
  sample.processes.erase(rest, sample.processes.end());
}

}  // namespace

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
    sample.anon_bytes = process.pages.anon_bytes;
    sample.file_bytes = process.pages.file_bytes;
    sample.shmem_bytes = process.pages.shmem_bytes;
    sample.swap_bytes = process.pages.swap_bytes;
    sample.locked_bytes = process.pages.locked_bytes;
    sample.pinned_bytes = process.pages.pinned_bytes;
  }
  writer_.sample(sample);
}

void SampleWriter::write(std::uint64_t ticks, HostPartsSample sample) {
  if (ticks < start_ticks_) return;
  sample.time_ns = time_ns(ticks);
  for (HostProcess& process : sample.processes) process.recorded = process.pid == pid_;
  keep_largest(sample);
  writer_.sample(std::move(sample));
}

void SampleWriter::write(std::uint64_t ticks, KilledProcess killed) {
  if (ticks < start_ticks_) return;
  killed.time_ns = time_ns(ticks);
  killed.process.recorded = killed.process.pid == pid_;
  writer_.sample(std::move(killed));
}

std::optional<SampledDeviceId> SampleWriter::id_of(SampledDeviceId position) const {
  return position.value < ids_.size() ? ids_[position.value] : std::nullopt;
}

}  // namespace tidemark
