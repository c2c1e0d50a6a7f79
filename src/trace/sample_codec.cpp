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

// What both directions of a body are made from: visit(fields, record) names the fields of a record in their order, and
// a Putter or a Taker does something with each. Where a body ends early, what is missing is none, empty or 0.

class Putter {
 public:
  explicit Putter(std::vector<std::uint8_t>& body) : writer_(body) {}

  void number(std::uint64_t value) { writer_.number(value); }
  void integer(std::int64_t value) { writer_.integer(value); }
  void text(std::string_view value) { writer_.text(value); }
  void flag(bool value) { writer_.number(value ? 1 : 0); }
  template <typename Number>
  void optional(const std::optional<Number>& value) {
    writer_.optional(value);
  }
  void optional_flag(const std::optional<bool>& value) {
    writer_.optional(value ? std::optional<std::uint64_t>(*value ? 1 : 0) : std::nullopt);
  }
  void optional_integer(const std::optional<std::int32_t>& value) {
    writer_.optional(value ? std::optional(zigzag(*value)) : std::nullopt);
  }
  template <typename Enum>
  void choice(Enum value, Enum /*last*/, Enum /*otherwise*/) {
    writer_.number(static_cast<std::uint8_t>(value));
  }
  template <typename Item>
  void list(const std::vector<Item>& items) {
    writer_.number(items.size());
    for (const Item& item : items) visit(*this, item);
  }
  template <typename Record>
  void sized(const Record& record) {
    std::vector<std::uint8_t> body;
    Putter own(body);
    visit_sized(own, record);
    writer_.text({reinterpret_cast<const char*>(body.data()), body.size()});
  }
  static constexpr bool at_end() { return false; }

 private:
  FieldWriter writer_;
};

class Taker {
 public:
  explicit Taker(FieldReader& reader) : reader_(reader) {}

  template <typename Number>
  void number(Number& value) {
    value = static_cast<Number>(reader_.number());
  }
  void integer(std::int64_t& value) { value = reader_.integer(); }
  void text(std::string& value) { value = reader_.text(); }
  void flag(bool& value) { value = reader_.number() != 0; }
  template <typename Number>
  void optional(std::optional<Number>& value) {
    reader_.optional(value);
  }
  void optional_flag(std::optional<bool>& value) {
    std::optional<std::uint64_t> code;
    reader_.optional(code);
    if (code) value = *code != 0;
  }
  void optional_integer(std::optional<std::int32_t>& value) {
    std::optional<std::uint64_t> code;
    reader_.optional(code);
    if (code) value = static_cast<std::int32_t>(unzigzag(*code));
  }
  // What later versions add to an enumeration counts as the value that says least.
  template <typename Enum>
  void choice(Enum& value, Enum last, Enum otherwise) {
    const std::uint64_t code = reader_.number();
    value = code <= static_cast<std::uint64_t>(last) ? static_cast<Enum>(code) : otherwise;
  }
  template <typename Item>
  void list(std::vector<Item>& items) {
    const std::uint64_t count = reader_.number();
    for (std::uint64_t n = 0; n < count && reader_.ok(); ++n) visit(*this, items.emplace_back());
  }
  template <typename Record>
  void sized(Record& record) {
    FieldReader body(reader_.bytes());
    Taker own(body);
    visit_sized(own, record);
    reader_.require(body.ok());
  }
  [[nodiscard]] bool at_end() const { return reader_.at_end(); }

 private:
  FieldReader& reader_;
};

// `Record` is const for a Putter.
template <typename Record, typename Type>
concept Of = std::is_same_v<std::remove_const_t<Record>, Type>;

template <typename Fields, Of<SampledDevice> Record>
void visit(Fields& fields, Record& device) {
  fields.number(device.index);
  fields.optional(device.instance_of);
  fields.optional(device.cuda_index);
  fields.optional(device.total_bytes);
  fields.text(device.vendor);
  fields.text(device.name);
  fields.text(device.uuid);
  fields.text(device.bus_id);
}

template <typename Fields, Of<DeviceSample> Record>
void visit(Fields& fields, Record& sample) {
  fields.number(sample.time_ns);
  fields.number(sample.device.value);
  fields.optional(sample.used_bytes);
  fields.optional(sample.driver_reserved_bytes);
  fields.optional(sample.utilization_percent);
  fields.optional_integer(sample.temperature_celsius);
  fields.optional(sample.power_milliwatts);
}

template <typename Fields, Of<SampledProcess> Record>
void visit(Fields& fields, Record& process) {
  fields.integer(process.pid);
  fields.choice(process.kind, ProcessKind::other_namespace, ProcessKind::other);
  fields.optional(process.bytes);
  fields.text(process.name);
}

template <typename Fields, Of<DeviceProcessesSample> Record>
void visit(Fields& fields, Record& sample) {
  fields.number(sample.time_ns);
  fields.number(sample.device.value);
  fields.list(sample.processes);
}

template <typename Fields, Of<HostSample> Record>
void visit(Fields& fields, Record& sample) {
  fields.number(sample.time_ns);
  fields.optional(sample.rss_bytes);
  fields.optional(sample.pss_bytes);
  fields.optional(sample.job_processes);
  fields.optional(sample.job_rss_bytes);
  fields.optional(sample.job_pss_bytes);
  fields.optional(sample.cgroup_usage_bytes);
  fields.optional(sample.cgroup_limit_bytes);
  fields.optional(sample.cgroup_oom_kills);
  if (fields.at_end()) return;  // of a version that knew no more
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
}

template <typename Fields, Of<SlowDriverCall> Record>
void visit(Fields& fields, Record& call) {
  fields.number(call.time_ns);
  fields.number(call.duration_ns);
}

template <typename Fields, Of<ProcessPages> Record>
void visit(Fields& fields, Record& pages) {
  fields.optional(pages.rss_bytes);
  fields.optional(pages.anon_bytes);
  fields.optional(pages.file_bytes);
  fields.optional(pages.shmem_bytes);
  fields.optional(pages.swap_bytes);
  fields.optional(pages.locked_bytes);
  fields.optional(pages.pinned_bytes);
}

template <typename Fields, Of<HostProcess> Record>
void visit_sized(Fields& fields, Record& process) {
  fields.integer(process.pid);
  fields.integer(process.parent_pid);
  fields.choice(process.role, ProcessRole::child, ProcessRole::other);
  fields.flag(process.recorded);
  fields.optional(process.number);
  fields.optional(process.count);
  visit(fields, process.pages);
  fields.optional(process.pss_bytes);
  fields.optional(process.private_bytes);
  fields.text(process.name);
}

// With its length, so that later versions can add fields at its end.
template <typename Fields, Of<HostProcess> Record>
void visit(Fields& fields, Record& process) {
  fields.sized(process);
}

template <typename Fields, Of<MemoryParts> Record>
void visit(Fields& fields, Record& parts) {
  fields.optional(parts.used_bytes);
  fields.optional(parts.limit_bytes);
  fields.optional(parts.anon_bytes);
  fields.optional(parts.cache_bytes);
  fields.optional(parts.shmem_bytes);
  fields.optional(parts.kernel_bytes);
  fields.optional(parts.socket_bytes);
  fields.optional(parts.swap_bytes);
}

template <typename Fields, Of<HostPartsSample> Record>
void visit(Fields& fields, Record& sample) {
  fields.number(sample.time_ns);
  visit(fields, sample.cgroup);
  auto& events = sample.cgroup_events;
  fields.optional(events.low);
  fields.optional(events.high);
  fields.optional(events.max);
  fields.optional(events.oom);
  fields.optional_flag(events.under_oom);
  visit(fields, sample.machine);
  fields.optional(sample.machine_available_bytes);
  fields.optional(sample.machine_oom_kills);
  fields.list(sample.processes);
  fields.number(sample.other_processes);
  visit(fields, sample.other_pages);
}

template <typename Fields, Of<KilledProcess> Record>
void visit(Fields& fields, Record& killed) {
  fields.number(killed.time_ns);
  visit(fields, killed.process);
  fields.choice(killed.evidence, KillEvidence::vanished, KillEvidence::vanished);
  fields.choice(killed.scope, KillScope::machine, KillScope::unknown);
  fields.optional(killed.cgroup_usage_bytes);
  fields.optional(killed.cgroup_limit_bytes);
}

constexpr SampleKind kind_of(const SampledDevice& /*record*/) {
  return SampleKind::device;
}
constexpr SampleKind kind_of(const DeviceSample& /*record*/) {
  return SampleKind::device_sample;
}
constexpr SampleKind kind_of(const DeviceProcessesSample& /*record*/) {
  return SampleKind::device_processes;
}
constexpr SampleKind kind_of(const HostSample& /*record*/) {
  return SampleKind::host;
}
constexpr SampleKind kind_of(const SlowDriverCall& /*record*/) {
  return SampleKind::slow_driver_call;
}
constexpr SampleKind kind_of(const HostPartsSample& /*record*/) {
  return SampleKind::host_parts;
}
constexpr SampleKind kind_of(const KilledProcess& /*record*/) {
  return SampleKind::killed_process;
}

template <typename Record>
Record take(FieldReader& fields) {
  Record record;
  Taker taker(fields);
  visit(taker, record);
  return record;
}

/// None for a kind that this code does not know.
std::optional<SampleRecord> read_record(std::uint64_t kind, FieldReader& fields) {
  if (kind > static_cast<std::uint64_t>(SampleKind::killed_process)) return std::nullopt;
  switch (static_cast<SampleKind>(kind)) {
    case SampleKind::device:
      return take<SampledDevice>(fields);
    case SampleKind::device_sample:
      return take<DeviceSample>(fields);
    case SampleKind::device_processes:
      return take<DeviceProcessesSample>(fields);
    case SampleKind::host:
      return take<HostSample>(fields);
    case SampleKind::slow_driver_call:
      return take<SlowDriverCall>(fields);
    case SampleKind::host_parts:
      return take<HostPartsSample>(fields);
    case SampleKind::killed_process:
      return take<KilledProcess>(fields);
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
  constexpr std::size_t kMinHostProcess = 17;  // its length, and fields of a byte each
  switch (static_cast<SampleKind>(std::min<std::uint64_t>(kind, 255))) {
    case SampleKind::device_processes:
      return sizeof(DeviceProcessesSample) + bytes * (sizeof(SampledProcess) / kMinDeviceProcess);
    case SampleKind::host_parts:
      return sizeof(HostPartsSample) + bytes * (sizeof(HostProcess) / kMinHostProcess);
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
  Putter putter(scratch_);
  const SampleKind kind = std::visit(
      [&putter](const auto& fields) {
        visit(putter, fields);
        return kind_of(fields);
      },
      record);
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
