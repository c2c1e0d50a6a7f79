#include "trace/sample_codec.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

// What later versions add to an enumeration counts as its first value or its last, whichever says least.
template <typename Enum>
Enum enum_of(std::uint64_t code, Enum last, Enum otherwise) {
  return code <= static_cast<std::uint64_t>(last) ? static_cast<Enum>(code) : otherwise;
}

void put_process_pages(FieldWriter& fields, const ProcessPages& pages) {
  fields.optional(pages.rss_bytes)
      .optional(pages.anon_bytes)
      .optional(pages.file_bytes)
      .optional(pages.shmem_bytes)
      .optional(pages.swap_bytes)
      .optional(pages.locked_bytes)
      .optional(pages.pinned_bytes);
}

ProcessPages read_process_pages(FieldReader& fields) {
  ProcessPages pages;
  fields.optional(pages.rss_bytes);
  fields.optional(pages.anon_bytes);
  fields.optional(pages.file_bytes);
  fields.optional(pages.shmem_bytes);
  fields.optional(pages.swap_bytes);
  fields.optional(pages.locked_bytes);
  fields.optional(pages.pinned_bytes);
  return pages;
}

// With its length, so that later versions can add fields at its end.
void put_host_process(FieldWriter& fields, const HostProcess& process) {
  std::vector<std::uint8_t> body;
  FieldWriter own(body);
  own.integer(process.pid)
      .integer(process.parent_pid)
      .number(static_cast<std::uint8_t>(process.role))
      .number(process.recorded ? 1 : 0)
      .optional(process.number)
      .optional(process.count);
  put_process_pages(own, process.pages);
  own.optional(process.pss_bytes).optional(process.private_bytes).text(process.name);
  fields.text({reinterpret_cast<const char*>(body.data()), body.size()});
}

HostProcess read_host_process(FieldReader& fields) {
  HostProcess process;
  FieldReader own(fields.bytes());
  process.pid = own.integer();
  process.parent_pid = own.integer();
  process.role = enum_of(own.number(), ProcessRole::child, ProcessRole::other);
  process.recorded = own.number() != 0;
  own.optional(process.number);
  own.optional(process.count);
  process.pages = read_process_pages(own);
  own.optional(process.pss_bytes);
  own.optional(process.private_bytes);
  process.name = own.text();
  fields.require(own.ok());
  return process;
}

void put_memory_parts(FieldWriter& fields, const MemoryParts& parts) {
  fields.optional(parts.used_bytes)
      .optional(parts.limit_bytes)
      .optional(parts.anon_bytes)
      .optional(parts.cache_bytes)
      .optional(parts.shmem_bytes)
      .optional(parts.kernel_bytes)
      .optional(parts.socket_bytes)
      .optional(parts.swap_bytes);
}

MemoryParts read_memory_parts(FieldReader& fields) {
  MemoryParts parts;
  fields.optional(parts.used_bytes);
  fields.optional(parts.limit_bytes);
  fields.optional(parts.anon_bytes);
  fields.optional(parts.cache_bytes);
  fields.optional(parts.shmem_bytes);
  fields.optional(parts.kernel_bytes);
  fields.optional(parts.socket_bytes);
  fields.optional(parts.swap_bytes);
  return parts;
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

void put_fields(FieldWriter& fields, const HostPartsSample& sample) {
  fields.number(sample.time_ns);
  put_memory_parts(fields, sample.cgroup);
  const MemoryEvents& events = sample.cgroup_events;
  fields.optional(events.low).optional(events.high).optional(events.max).optional(events.oom);
  fields.optional(events.under_oom ? std::optional<std::uint64_t>(*events.under_oom ? 1 : 0) : std::nullopt);
  put_memory_parts(fields, sample.machine);
  fields.optional(sample.machine_available_bytes).optional(sample.machine_oom_kills);
  fields.number(sample.processes.size());
  for (const HostProcess& process : sample.processes) put_host_process(fields, process);
  fields.number(sample.other_processes);
  put_process_pages(fields, sample.other_pages);
}

HostPartsSample read_host_parts(FieldReader& fields) {
  HostPartsSample sample;
  sample.time_ns = fields.number();
  sample.cgroup = read_memory_parts(fields);
  MemoryEvents& events = sample.cgroup_events;
  fields.optional(events.low);
  fields.optional(events.high);
  fields.optional(events.max);
  fields.optional(events.oom);
  std::optional<std::uint64_t> under_oom;
  fields.optional(under_oom);
  if (under_oom) events.under_oom = *under_oom != 0;
  sample.machine = read_memory_parts(fields);
  fields.optional(sample.machine_available_bytes);
  fields.optional(sample.machine_oom_kills);
  const std::uint64_t count = fields.number();
  for (std::uint64_t n = 0; n < count && fields.ok(); ++n) sample.processes.push_back(read_host_process(fields));
  sample.other_processes = fields.number32();
  sample.other_pages = read_process_pages(fields);
  return sample;
}

void put_fields(FieldWriter& fields, const KilledProcess& killed) {
  fields.number(killed.time_ns);
  put_host_process(fields, killed.process);
  fields.number(static_cast<std::uint8_t>(killed.evidence))
      .number(static_cast<std::uint8_t>(killed.scope))
      .optional(killed.cgroup_usage_bytes)
      .optional(killed.cgroup_limit_bytes);
}

KilledProcess read_killed_process(FieldReader& fields) {
  KilledProcess killed;
  killed.time_ns = fields.number();
  killed.process = read_host_process(fields);
  killed.evidence = enum_of(fields.number(), KillEvidence::vanished, KillEvidence::vanished);
  killed.scope = enum_of(fields.number(), KillScope::machine, KillScope::unknown);
  fields.optional(killed.cgroup_usage_bytes);
  fields.optional(killed.cgroup_limit_bytes);
  return killed;
}

Result<SampleReader> SampleReader::open(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream) return stream.error();
  auto frames = FrameReader::open(std::move(*stream));
  if (!frames) return frames.error();
  return SampleReader(std::move(*frames));
}

Result<bool> SampleReader::next(std::vector<SampleRecord>& batch) {
  batch.clear();
  Frame frame;
  while (batch.empty()) {
    auto found = frames_->next(frame, format::FrameType::samples);
    if (!found || !*found) return found;
    if (frame.payload.empty()) continue;
    const auto decoded = decoder_.decode(frame.payload, frame.stored_length,
                                         [&](const SampleRecord& record) { batch.push_back(record); });
    if (!decoded) frames_->reject(frame, decoded.error().message);
  }
  return true;
}

}  // namespace tidemark
