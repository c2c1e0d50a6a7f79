// Reads the lanes of a process: maps its memory, follows each lane's chain of chunks, checks every record, gives chunks
// back, and converts ticks to nanoseconds.
//
// The memory is written by the recorded process, which may be hostile or broken: a record is copied before it is
// parsed, lengths and chunk numbers are checked, and an invalid lane is given up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/uint128.h"
#include "collect/ring/layout.h"

namespace tidemark {

/// Maps the memory that a process sent; unmaps it when destroyed.
class SharedMemory {
 public:
  /// Takes ownership of `fd`. Fails unless it is a sealed memfd of the right size with a layout of this version.
  static Result<std::unique_ptr<SharedMemory>> map(ScopedFd fd);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] ring::Shared* get() const { return shared_; }

 private:
  explicit SharedMemory(ring::Shared* shared) : shared_(shared) {}
  ring::Shared* shared_;
};

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

  /// The lane contains data that this library never writes; the rest of the lane is lost.
  [[nodiscard]] bool broken() const { return broken_; }

  [[nodiscard]] const ring::Lane& lane() const { return *lane_; }

 private:
  ring::Chunk* chunk_at(std::uint32_t number);
  bool advance();
  void recycle(std::uint32_t number);

  ring::Shared* shared_;
  ring::Lane* lane_;
  std::uint32_t current_ = 0;  ///< 1 + number of the chunk being read; 0 = none yet
  std::size_t read_ = 0;       ///< words of that chunk that were read
  bool broken_ = false;
};

/// The clock that recorded processes should use here: the TSC if the kernel itself keeps time by it, so that it has a
/// constant rate, never stops, and agrees between cores; it costs half as much as clock_gettime.
[[nodiscard]] ring::Clock choose_clock();

/// Converts the clock's ticks to CLOCK_MONOTONIC. One for the whole job, so that its processes share one time axis.
/// Immutable once constructed.
class TickClock {
 public:
  /// Takes 20 ms with the TSC: its rate is measured (to some 5 ppm).
  explicit TickClock(ring::Clock clock);

  [[nodiscard]] ring::Clock clock() const { return clock_; }
  [[nodiscard]] std::uint64_t now() const;

  /// Nanoseconds between two readings; 0 if `to` is before `from`.
  [[nodiscard]] std::uint64_t between_ns(std::uint64_t from, std::uint64_t to) const {
    if (to <= from) return 0;
    const auto ticks = static_cast<uint128>(to - from);
    return static_cast<std::uint64_t>((ticks * ns_per_tick_) >> kShift);
  }
  [[nodiscard]] std::uint64_t ticks_in_ns(std::uint64_t ns) const {
    return static_cast<std::uint64_t>((static_cast<uint128>(ns) << kShift) / ns_per_tick_);
  }
  /// Wall clock (ns since 1970) of a reading.
  [[nodiscard]] std::uint64_t wall_ns(std::uint64_t ticks) const;

 private:
  static constexpr int kShift = 40;

  ring::Clock clock_;
  std::uint64_t ns_per_tick_ = std::uint64_t{1} << kShift;  ///< fixed point
};

}  // namespace tidemark
