// A set of addresses of objects, in zero-initialized memory. Lock-free, any thread.
//
// It holds 32-bit tags in buckets of eight, 256 KiB of zero pages until used. A tag is the address without its four low
// bits (objects are 16-byte aligned), cut to 32: two live objects 64 GiB apart could share one. A full bucket gets the
// tag that matches everything. So there can be false positives, but no false negatives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::process {

class AddressSet {
 public:
  /// True if the address was not in the set.
  bool insert(std::uintptr_t address) noexcept {
    const std::uint32_t tag = tag_of(address);
    Bucket& bucket = bucket_of(tag);
    for (std::atomic<std::uint32_t>& slot : bucket.tags) {
      std::uint32_t seen = slot.load();
      if (seen == kEmpty && slot.compare_exchange_strong(seen, tag)) return true;
      if (seen == tag || seen == kMatchAll) return false;
    }
    bucket.tags[kWays - 1].store(kMatchAll);
    return true;
  }

  /// True if the address was in the set. Other addresses that match the tag are removed with it.
  bool erase(std::uintptr_t address) noexcept {
    const std::uint32_t tag = tag_of(address);
    bool found = false;
    for (std::atomic<std::uint32_t>& slot : bucket_of(tag).tags) {
      const std::uint32_t seen = slot.load(std::memory_order_relaxed);
      if (seen != tag && seen != kMatchAll) continue;
      slot.store(kEmpty);
      found = true;
    }
    return found;
  }

  void clear() noexcept {
    for (Bucket& bucket : buckets_) {
      for (std::atomic<std::uint32_t>& slot : bucket.tags) {
        if (slot.load(std::memory_order_relaxed) != kEmpty) slot.store(kEmpty);
      }
    }
  }

 private:
  static constexpr std::size_t kBuckets = 8192;
  static constexpr std::size_t kWays = 8;
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kMatchAll = 0xFFFFFFFF;

  struct alignas(kWays * sizeof(std::uint32_t)) Bucket {
    std::atomic<std::uint32_t> tags[kWays];
  };

  static std::uint32_t tag_of(std::uintptr_t address) noexcept {
    const auto tag = static_cast<std::uint32_t>(address >> 4);
    return tag == kEmpty || tag == kMatchAll ? 1 : tag;
  }

  Bucket& bucket_of(std::uint32_t tag) noexcept {
    return buckets_[(tag * 0x9E3779B1U) >> 19];  // Fibonacci hashing to 13 bits
  }

  Bucket buckets_[kBuckets];
};

}  // namespace tidemark::process
