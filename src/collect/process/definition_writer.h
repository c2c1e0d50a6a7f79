// Sends one definition (ring::DefinitionKind) through a lane, cut into blobs. Fields have no padding.
#pragma once

#include <cstdint>
#include <cstring>

#include "collect/process/lane_writer.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

class DefinitionWriter {
 public:
  DefinitionWriter(LaneWriter* lane, ring::DefinitionKind kind) noexcept : lane_(lane) {
    u32(static_cast<std::uint32_t>(kind));
  }

  void bytes(const void* data, std::size_t size) noexcept {
    const auto* from = static_cast<const char*>(data);
    while (size > 0) {
      if (used_ == sizeof(buffer_)) flush(0);
      const std::size_t part = size < sizeof(buffer_) - used_ ? size : sizeof(buffer_) - used_;
      std::memcpy(buffer_ + used_, from, part);
      used_ += part;
      from += part;
      size -= part;
    }
  }
  void u32(std::uint32_t value) noexcept { bytes(&value, sizeof(value)); }
  void u64(std::uint64_t value) noexcept { bytes(&value, sizeof(value)); }
  void text(const void* data, std::size_t size) noexcept {
    u32(static_cast<std::uint32_t>(size));
    bytes(data, size);
  }
  void text(const PythonText& string) noexcept {
    bytes(&string.kind, 1);
    text(string.data, string.length * string.kind);
  }
  void text(const char* string) noexcept { text(string, std::strlen(string)); }

  /// Sends what is left. False when the pool ran out on the way: the recorder then drops the unfinished definition.
  [[nodiscard]] bool finish() noexcept {
    flush(ring::kBlobLast);
    return ok_;
  }

 private:
  void flush(std::uint8_t last) noexcept {
    const std::size_t words = 1 + (used_ + 7) / 8;
    std::uint64_t* record = ok_ ? lane_->reserve(words) : nullptr;
    if (record == nullptr) {
      ok_ = false;
    } else {
      const auto flags = static_cast<std::int8_t>(last | (first_ ? ring::kBlobFirst : 0));
      const ring::RecordHeader header{ring::RecordKind::blob, flags, 0, static_cast<std::uint8_t>(words),
                                      static_cast<std::uint32_t>(used_)};
      std::memcpy(record, &header, sizeof(header));
      std::memcpy(record + 1, buffer_, used_);
      lane_->commit(words);
    }
    first_ = false;
    used_ = 0;
  }

  LaneWriter* lane_;
  std::size_t used_ = 0;
  bool first_ = true;
  bool ok_ = true;
  char buffer_[ring::kBlobBytes];
};

}  // namespace tidemark::process
