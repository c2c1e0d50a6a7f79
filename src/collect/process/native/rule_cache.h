// Unwind rules by return address: a fixed table, shared by all threads without locks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collect/process/native/unwind_rule.h"

namespace tidemark::process {

/// Two entries a set. An entry is one word, so a race can lose a rule but never mix two. The key is mixed by an
/// invertible multiplication, and set number and tag together hold all of its 47 bits: a hit is always right.
/// Thread-safe. Constant-initialized: may be used before constructors run.
class RuleCache {
 public:
  static constexpr unsigned kAddressBits = 47;  ///< user addresses of x86-64
  static constexpr unsigned kTagBits = 64 - kRuleBits;
  static constexpr unsigned kSetBits = kAddressBits - kTagBits;
  static constexpr std::size_t kWays = 2;
  static constexpr std::size_t kEntries = kWays << kSetBits;

  /// A packed rule (ignore the higher bits), or 0. `pc` must be below 2^47.
  [[nodiscard]] std::uint64_t find(std::uint64_t pc) const noexcept {
    const std::uint64_t key = mix(pc);
    const auto& set = sets_[key >> kTagBits];
    const std::uint64_t tag = key << kRuleBits;
    const std::uint64_t first = set.ways[0].load(std::memory_order_relaxed);
    if (((first ^ tag) >> kRuleBits) == 0) return first & kRuleMask;
    const std::uint64_t second = set.ways[1].load(std::memory_order_relaxed);
    return ((second ^ tag) >> kRuleBits) == 0 ? second & kRuleMask : 0;
  }

  /// Replaces the older entry of the set.
  void insert(std::uint64_t pc, std::uint32_t rule) noexcept {
    const std::uint64_t key = mix(pc);
    auto& set = sets_[key >> kTagBits];
    set.ways[1].store(set.ways[0].load(std::memory_order_relaxed), std::memory_order_relaxed);
    set.ways[0].store(key << kRuleBits | rule, std::memory_order_relaxed);
  }

  void clear() noexcept {
    for (auto& set : sets_) {
      for (auto& way : set.ways) way.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint64_t kRuleMask = (std::uint64_t{1} << kRuleBits) - 1;

  /// Odd multiplier (2^64 / golden ratio), hence a bijection of the low 47 bits; the high ones choose the set.
  static constexpr std::uint64_t mix(std::uint64_t pc) {
    return pc * 0x9E3779B97F4A7C15 & ((std::uint64_t{1} << kAddressBits) - 1);
  }

  struct Set {
    std::atomic<std::uint64_t> ways[kWays];
  };
  Set sets_[std::size_t{1} << kSetBits];
};

}  // namespace tidemark::process
