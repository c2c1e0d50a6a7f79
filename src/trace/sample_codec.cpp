#include "trace/sample_codec.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "trace/record_fields.h"

namespace tidemark {

namespace {

using format::SampleKind;

// The kinds of records are the places of SampleRecord's alternatives, from 1.
static_assert(std::variant_size_v<SampleRecord> == static_cast<std::size_t>(SampleKind::killed_process));

/// An empty record; nullopt for an unknown kind.
template <std::size_t kIndex = 0>
std::optional<SampleRecord> record_of(std::uint64_t kind) {
  if constexpr (kIndex < std::variant_size_v<SampleRecord>) {
    return kind == kIndex + 1 ? SampleRecord(std::in_place_index<kIndex>) : record_of<kIndex + 1>(kind);
  } else {
    return std::nullopt;
  }
}

/// Whether the device of a record was defined before it.
bool refers_to_known(const SampleRecord& record, std::uint32_t devices) {
  if (const auto* sample = std::get_if<DeviceSample>(&record)) return sample->device.value < devices;
  if (const auto* processes = std::get_if<DeviceProcessesSample>(&record)) return processes->device.value < devices;
  return true;
}

/// Maximum memory of a record with a body of this size: each item of a list or text takes at least as many bytes in the
/// file.
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
  FieldWriter fields(scratch_);
  std::visit([&fields](const auto& of) { fields.field(of); }, record);
  append_record(static_cast<std::uint8_t>(record.index() + 1), scratch_, pending_);
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
    std::optional<SampleRecord> record = record_of(kind);
    if (!record) {
      ++unknown_records_;
      continue;
    }
    FieldReader fields(body);
    std::visit([&fields](auto& of) { fields.field(of); }, *record);
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
