// A cache of walks by their starting point. One thread at a time.
//
// A walk is a function of its first frame and of the stack words that it read. While those words are unchanged, so is
// the walk; and comparing them is faster than walking, because their addresses are known in advance, while a walk gets
// each from the frame before. A training loop has about a hundred walks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/native/unwinder.h"

namespace tidemark::process {

/// A walk and its inputs.
struct WalkRecord {
  static constexpr std::size_t kMaxWords = 256;
  struct Word {
    const std::uintptr_t* place;
    std::uintptr_t value;
  };

  NativeContext context;
  std::uintptr_t stop_low;
  std::uint64_t hash;    ///< of the frames; set by the owner of the record
  std::uint32_t frames;  ///< number of frames
  std::uint32_t next;    ///< in the memo's chain
  std::uint16_t word_count;
  bool reads_fp;   ///< whether the walk depends on context.fp
  bool complete;   ///< all inputs are here: the record may be kept
  bool truncated;  ///< there were more frames
  Word words[kMaxWords];

  [[nodiscard]] std::size_t bytes() const noexcept { return offsetof(WalkRecord, words) + word_count * sizeof(Word); }
};

/// Bounded: when it is full it is cleared. All-zero memory is an empty memo, and unused pages are never touched. The
/// records of a thread's walks are valid for that thread's stack only.
class WalkMemo {
 public:
  /// The walk that native_walk(context, …, stop_low, …) would do now, or null if it is not cached. Valid until the next
  /// new_record() or clear(). Reads the calling thread's stack at the addresses that the walks read: at and above
  /// context.sp.
  const WalkRecord* find(const NativeContext& context, std::uintptr_t stop_low) noexcept;

  /// Room for recording a walk, until keep(); null if the memo is full: clear() first.
  WalkRecord* new_record() noexcept;

  /// Adds the latest record of new_record(), if it is complete.
  void keep(WalkRecord* record) noexcept;

  /// Bytes that doubling would add; 0 at the maximum.
  [[nodiscard]] std::size_t growth() const noexcept { return capacity() < kMaxBytes ? capacity() : 0; }

  /// Removes everything; doubles the size if `grow` and growth() > 0.
  void clear(bool grow) noexcept;

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{32} * 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{256} * 1024;
  static constexpr std::size_t kBuckets = 256;
  static constexpr int kLongestChain = 8;  ///< records compared by one lookup

  [[nodiscard]] std::size_t capacity() const noexcept { return kFirstBytes << doublings_; }
  [[nodiscard]] WalkRecord* at(std::uint32_t number) noexcept;
  std::uint32_t& bucket(const NativeContext& context) noexcept;

  std::size_t doublings_;
  std::size_t used_;
  std::uint32_t buckets_[kBuckets];  ///< 1 + offset in words of the chain's first record; 0 = none
  alignas(WalkRecord) unsigned char bytes_[kMaxBytes];
};

}  // namespace tidemark::process
