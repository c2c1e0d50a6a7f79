#include "trace/sample_codec.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "trace/host_sample_codec.h"
#include "trace/record_fields.h"

namespace tidemark {
namespace {

using format::SampleKind;

std::optional<std::uint64_t> zigzag_of(const std::optional<std::int32_t>& value) {
  return value ? std::optional(zigzag(*value)) : std::nullopt;
}

SampleKind put(FieldWriter fields, const SampledDevice& device) {
  fields.number(device.index)
      .optional(device.instance_of)
      .optional(device.cuda_index)
      .optional(device.total_bytes)
      .text(device.vendor)
      .text(device.name)
      .text(device.uuid)
      .text(device.bus_id);
  return SampleKind::device;
}

SampleKind put(FieldWriter fields, const DeviceSample& sample) {
  fields.number(sample.time_ns)
      .number(sample.device.value)
      .optional(sample.used_bytes)
      .optional(sample.driver_reserved_bytes)
      .optional(sample.utilization_percent)
      .optional(zigzag_of(sample.temperature_celsius))
      .optional(sample.power_milliwatts);
  return SampleKind::device_sample;
}

SampleKind put(FieldWriter fields, const DeviceProcessesSample& sample) {
  fields.number(sample.time_ns).number(sample.device.value).number(sample.processes.size());
  for (const SampledProcess& process : sample.processes) {
    fields.integer(process.pid)
        .number(static_cast<std::uint8_t>(process.kind))
        .optional(process.bytes)
        .text(process.name);
  }
  return SampleKind::device_processes;
}

SampleKind put(FieldWriter fields, const HostSample& sample) {
  fields.number(sample.time_ns)
      .optional(sample.rss_bytes)
      .optional(sample.pss_bytes)
      .optional(sample.job_processes)
      .optional(sample.job_rss_bytes)
      .optional(sample.job_pss_bytes)
      .optional(sample.cgroup_usage_bytes)
      .optional(sample.cgroup_limit_bytes)
      .optional(sample.cgroup_oom_kills)
      .optional(sample.anon_bytes)
      .optional(sample.file_bytes)
      .optional(sample.shmem_bytes)
      .optional(sample.swap_bytes)
      .optional(sample.locked_bytes)
      .optional(sample.pinned_bytes)
      .optional(sample.job_anon_bytes)
      .optional(sample.job_file_bytes)
      .optional(sample.job_shmem_bytes)
      .optional(sample.job_swap_bytes)
      .optional(sample.machine_available_bytes);
  return SampleKind::host;
}

SampleKind put(FieldWriter fields, const HostPartsSample& sample) {
  put_fields(fields, sample);
  return SampleKind::host_parts;
}

SampleKind put(FieldWriter fields, const KilledProcess& killed) {
  put_fields(fields, killed);
  return SampleKind::killed_process;
}

SampleKind put(FieldWriter fields, const SlowDriverCall& call) {
  fields.number(call.time_ns).number(call.duration_ns);
  return SampleKind::slow_driver_call;
}

SampledDevice read_device(FieldReader& fields) {
  SampledDevice device;
  device.index = fields.number32();
  fields.optional(device.instance_of);
  fields.optional(device.cuda_index);
  fields.optional(device.total_bytes);
  device.vendor = fields.text();
  device.name = fields.text();
  device.uuid = fields.text();
  device.bus_id = fields.text();
  return device;
}

DeviceSample read_device_sample(FieldReader& fields) {
  DeviceSample sample;
  sample.time_ns = fields.number();
  sample.device.value = fields.number32();
  fields.optional(sample.used_bytes);
  fields.optional(sample.driver_reserved_bytes);
  fields.optional(sample.utilization_percent);
  std::optional<std::uint64_t> temperature;
  fields.optional(temperature);
  if (temperature) sample.temperature_celsius = static_cast<std::int32_t>(unzigzag(*temperature));
  fields.optional(sample.power_milliwatts);
  return sample;
}

DeviceProcessesSample read_processes(FieldReader& fields) {
  DeviceProcessesSample sample;
  sample.time_ns = fields.number();
  sample.device.value = fields.number32();
  const std::uint64_t count = fields.number();
  for (std::uint64_t n = 0; n < count && fields.ok(); ++n) {
    SampledProcess process;
    process.pid = fields.integer();
    // A kind of later versions says only that it is somebody.
    const std::uint64_t kind = fields.number();
    process.kind = kind <= static_cast<std::uint64_t>(ProcessKind::other_namespace) ? static_cast<ProcessKind>(kind)
                                                                                    : ProcessKind::other;
    fields.optional(process.bytes);
    process.name = fields.text();
    sample.processes.push_back(std::move(process));
  }
  return sample;
}

HostSample read_host(FieldReader& fields) {
  HostSample sample;
  sample.time_ns = fields.number();
  fields.optional(sample.rss_bytes);
  fields.optional(sample.pss_bytes);
  fields.optional(sample.job_processes);
  fields.optional(sample.job_rss_bytes);
  fields.optional(sample.job_pss_bytes);
  fields.optional(sample.cgroup_usage_bytes);
  fields.optional(sample.cgroup_limit_bytes);
  fields.optional(sample.cgroup_oom_kills);
  if (fields.at_end()) return sample;  // of a version that knew no more
  fields.optional(sample.anon_bytes);
  fields.optional(sample.file_bytes);
  fields.optional(sample.shmem_bytes);
  fields.optional(sample.swap_bytes);
  fields.optional(sample.locked_bytes);
  fields.optional(sample.pinned_bytes);
  fields.optional(sample.job_anon_bytes);
  fields.optional(sample.job_file_bytes);
  fields.optional(sample.job_shmem_bytes);
  fields.optional(sample.job_swap_bytes);
  fields.optional(sample.machine_available_bytes);
  return sample;
}

SlowDriverCall read_slow_call(FieldReader& fields) {
  SlowDriverCall call;
  call.time_ns = fields.number();
  call.duration_ns = fields.number();
  return call;
}

/// None for a kind that this code does not know.
std::optional<SampleRecord> read_record(std::uint64_t kind, FieldReader& fields) {
  if (kind > static_cast<std::uint64_t>(SampleKind::killed_process)) return std::nullopt;
  switch (static_cast<SampleKind>(kind)) {
    case SampleKind::device:
      return read_device(fields);
    case SampleKind::device_sample:
      return read_device_sample(fields);
    case SampleKind::device_processes:
      return read_processes(fields);
    case SampleKind::host:
      return read_host(fields);
    case SampleKind::slow_driver_call:
      return read_slow_call(fields);
    case SampleKind::host_parts:
      return read_host_parts(fields);
    case SampleKind::killed_process:
      return read_killed_process(fields);
  }
  return std::nullopt;
}

/// Whether what a record is about was defined before it.
bool refers_to_known(const SampleRecord& record, std::uint32_t devices) {
  if (const auto* sample = std::get_if<DeviceSample>(&record)) return sample->device.value < devices;
  if (const auto* processes = std::get_if<DeviceProcessesSample>(&record)) return processes->device.value < devices;
  return true;
}

/// The most that a record with a body of so many bytes can take in memory: what it has lists or texts of, it takes as
/// many bytes of the file for, at least.
std::size_t most_memory(std::uint64_t kind, std::size_t bytes) {
  constexpr std::size_t kMinDeviceProcess = 4;
  switch (static_cast<SampleKind>(std::min<std::uint64_t>(kind, 255))) {
    case SampleKind::device_processes:
      return sizeof(DeviceProcessesSample) + bytes * (sizeof(SampledProcess) / kMinDeviceProcess);
    case SampleKind::host_parts:
      return sizeof(HostPartsSample) + bytes * (sizeof(HostProcess) / kMinHostProcessBytes);
    case SampleKind::device_sample:
    case SampleKind::host:
    case SampleKind::slow_driver_call:
      return sizeof(HostSample);
    default:
      return sizeof(SampleRecord) + bytes;
  }
}

}  // namespace

void SampleEncoder::add(const SampleRecord& record) {
  const SampleKind kind = std::visit([this](const auto& fields) { return put(FieldWriter(scratch_), fields); }, record);
  append_record(static_cast<std::uint8_t>(kind), scratch_, pending_);
}

std::size_t SampleEncoder::pending_bytes() const {
  std::size_t bytes = 0;
  for (const auto& payload : pending_) bytes += format::kFrameHeaderBytes + payload.size();
  return bytes;
}

void SampleEncoder::append_frames(FrameEncoder& frames, std::vector<std::byte>& out) {
  for (const auto& payload : pending_) {
    const ByteSpan part = payload;
    frames.append(format::FrameType::samples, {&part, 1}, out);
  }
  pending_.clear();
}

Result<void> SampleDecoder::decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes,
                                   const SampleObserver& observe) {
  memory_allowed_ += DefinitionDecoder::kMemoryPerStoredByte * stored_bytes;
  FieldReader records(payload);
  while (!records.at_end()) {
    const std::uint64_t kind = records.number();
    const auto body = records.bytes();
    if (!records.ok()) return Error{"a sample is longer than its frame"};
    memory_used_ += most_memory(kind, body.size());
    if (memory_used_ > memory_allowed_) {
      return Error{"its samples take far more memory than bytes in the file, as no recording's do"};
    }
    FieldReader fields(body);
    const auto record = read_record(kind, fields);
    if (!record) {
      ++unknown_records_;
      continue;
    }
    if (!fields.ok() || !refers_to_known(*record, devices_)) {
      return Error{"a sample is cut short, or of a device that was never defined"};
    }
    if (std::holds_alternative<SampledDevice>(*record)) ++devices_;
    if (observe) observe(*record);
  }
  return {};
}

}  // namespace tidemark
