// The writing end of a lane: appends records to a chain of chunks that the recorder drains. One thread at a time.
//
// It never waits. A record becomes visible by one release store of Chunk::committed, so the recorder sees it whole or
// not at all, whenever the process is killed. Definitions are cut into blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collect/process/python/python_walker.h"
#include "collect/ring/layout.h"

namespace tidemark::process {

class LaneWriter {
 public:
  /// Continues the lane's chain (the previous owner's chunk is filled up first). `shared` outlives the writer.
  void open(ring::Shared* shared, ring::Lane* lane) noexcept {
    shared_ = shared;
    lane_ = lane;
  }

  /// Begins a chain in new memory, which replaced an earlier recording's at the same address.
  void begin(ring::Shared* shared, ring::Lane* lane) noexcept {
    chunk_ = nullptr;
    used_ = 0;
    open(shared, lane);
  }

  [[nodiscard]] ring::Lane* lane() const noexcept { return lane_; }

  /// Room for a record of `words` 8-byte words (at most 255), or null if the pool is exhausted. Not visible to the
  /// recorder before commit().
  [[nodiscard]] std::uint64_t* reserve(std::size_t words) noexcept {
    if (chunk_ == nullptr || used_ + words > kCapacity) [[unlikely]] {
      if (!next_chunk()) return nullptr;
    }
    return chunk_->payload + used_;
  }

  void commit(std::size_t words) noexcept {
    used_ += words;
    chunk_->committed.store(static_cast<std::uint32_t>(used_ * 8), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kCapacity = ring::Chunk::kPayloadBytes / 8;

  bool next_chunk() noexcept;

  ring::Shared* shared_ = nullptr;
  ring::Lane* lane_ = nullptr;
  ring::Chunk* chunk_ = nullptr;
  std::size_t used_ = 0;  ///< words
};

/// Sends one definition (ring::DefinitionKind) through a lane. Fields have no padding.
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

  /// Sends the rest. False if the pool ran out: the recorder then drops the unfinished definition.
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
