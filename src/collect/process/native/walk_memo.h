// Walks already done, by where they began. One thread at a time.
//
// A walk is a function of its first frame and of the words of the stack that it read. While those words are what they
// were, so is the walk; and comparing them is quicker than walking, because their addresses are known beforehand, where
// a walk learns each from the frame before. A training loop has about a hundred walks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/native/unwinder.h"

namespace tidemark::process {

/// A walk and what decided where it went.
struct WalkRecord {
  static constexpr std::size_t kMaxWords = 256;
  struct Word {
    const std::uintptr_t* place;
    std::uintptr_t value;
  };

  NativeContext context;
  std::uintptr_t stop_low;
  std::uint64_t hash;    ///< of the frames; for whoever keeps the record
  std::uint32_t frames;  ///< how many
  std::uint32_t next;    ///< of the memo's chain
  std::uint16_t word_count;
  bool reads_fp;   ///< context.fp mattered
  bool complete;   ///< whatever mattered is here: the record may be kept
  bool truncated;  ///< there were more frames
  Word words[kMaxWords];

  [[nodiscard]] std::size_t bytes() const noexcept { return offsetof(WalkRecord, words) + word_count * sizeof(Word); }
};

/// Holds what fits; when it is full it forgets everything. All-zero memory is an empty memo, and pages that were never
/// needed are never touched. The records of a thread's walks hold for that thread's stack only.
class WalkMemo {
 public:
  /// The walk that native_walk(context, …, stop_low, …) would do now, or null if it is not known. Valid until the next
  /// new_record() or clear(). Reads the calling thread's stack where those walks read it: at and above context.sp.
  const WalkRecord* find(const NativeContext& context, std::uintptr_t stop_low) noexcept;

  /// Room for a walk to be recorded in, until keep(); null when the memo is full: clear() first.
  WalkRecord* new_record() noexcept;

  /// Adds the record that new_record() gave out last, if it is complete.
  void keep(WalkRecord* record) noexcept;

  /// Bytes that doubling would add; 0 at the maximum.
  [[nodiscard]] std::size_t growth() const noexcept { return capacity() < kMaxBytes ? capacity() : 0; }

  /// Forgets everything; twice as large from now on if `grow` and growth() > 0.
  void clear(bool grow) noexcept;

 private:
  static constexpr std::size_t kFirstBytes = std::size_t{32} * 1024;
  static constexpr std::size_t kMaxBytes = std::size_t{256} * 1024;
  static constexpr std::size_t kBuckets = 256;
  static constexpr int kLongestChain = 8;  ///< records that one look-up compares

  [[nodiscard]] std::size_t capacity() const noexcept { return kFirstBytes << doublings_; }
  [[nodiscard]] WalkRecord* at(std::uint32_t number) noexcept;
  std::uint32_t& bucket(const NativeContext& context) noexcept;

  std::size_t doublings_;
  std::size_t used_;
  std::uint32_t buckets_[kBuckets];  ///< 1 + offset in words of the chain's first record; 0 = none
  alignas(WalkRecord) unsigned char bytes_[kMaxBytes];
};

}  // namespace tidemark::process
