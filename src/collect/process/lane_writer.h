// The writing end of a lane: appends records to a chain of chunks that the recorder drains. One thread at a time.
//
// Nothing here waits. A record becomes visible by one release store of Chunk::committed, so the recorder sees it whole
// or not at all, whenever the process is killed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

class LaneWriter {
 public:
  /// Continues the lane's chain (the previous owner's chunk is filled up first). `shared` outlives the writer.
  void open(ring::Shared* shared, ring::Lane* lane) noexcept {
    shared_ = shared;
    lane_ = lane;
  }

  /// Begins a chain in memory that is new: that of an earlier recording lay at the same address.
  void begin(ring::Shared* shared, ring::Lane* lane) noexcept {
    chunk_ = nullptr;
    used_ = 0;
    open(shared, lane);
  }

  [[nodiscard]] ring::Lane* lane() const noexcept { return lane_; }

  /// Room for a record of `words` 8-byte words (at most 255), or null when the pool is exhausted. Not visible to the
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

}  // namespace tidemark::process
