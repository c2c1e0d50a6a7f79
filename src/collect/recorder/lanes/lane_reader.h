// The reading end of a lane: follows the chain of chunks, checks every record, gives chunks back.
//
// The memory is the recorded process's, which may be hostile or broken: a record is copied out before it is looked at,
// lengths and chunk numbers are checked, and a lane that makes no sense is given up.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "collect/ring/layout.h"

namespace tidemark {

/// A record copied out of a lane.
struct RingRecord {
  ring::RecordHeader header;
  std::array<std::uint64_t, 255> words;  ///< words[0] is the header

  /// Fields after the header.
  [[nodiscard]] std::span<const std::uint64_t> fields() const { return {words.data() + 1, header.words - 1U}; }
};

class LaneReader {
 public:
  LaneReader(ring::Shared* shared, std::uint32_t lane) : shared_(shared), lane_(&shared->lanes[lane]) {}

  /// Copies the next committed record to `record`; false when there is none (yet).
  bool next(RingRecord& record);

  /// Something was read that no process of ours writes; the rest of the lane is lost.
  [[nodiscard]] bool broken() const { return broken_; }

  [[nodiscard]] const ring::Lane& lane() const { return *lane_; }

 private:
  ring::Chunk* chunk_at(std::uint32_t number);
  bool advance();
  void recycle(std::uint32_t number);

  ring::Shared* shared_;
  ring::Lane* lane_;
  std::uint32_t current_ = 0;  ///< 1 + number of the chunk being read; 0 = none yet
  std::size_t read_ = 0;       ///< words of it read
  bool broken_ = false;
};

}  // namespace tidemark
