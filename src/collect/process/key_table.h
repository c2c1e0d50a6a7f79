// A fixed-capacity hash table of 64-bit keys to 32-bit values in memory that starts out zero. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/uint128.h"

namespace tidemark::process {

/// Well-mixed 64 bits from two words: the two halves of their 128-bit product, folded.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const uint128 product = static_cast<uint128>(a ^ 0x9E3779B97F4A7C15U) * (b ^ 0xD6E8FEB86659FD93U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Continues `hash` with a well-mixed word: for ordered sequences.
inline std::uint64_t mix_in_order(std::uint64_t hash, std::uint64_t mixed) noexcept {
  return ((hash << 7) | (hash >> 57)) ^ mixed;
}

/// Open addressing, linear probing; at most half full. Key 0 is not allowed. It starts with few entries and doubles up
/// to kMaxEntries, without keeping its entries: it caches data that can be sent again, so it never has to move entries.
/// All-zero memory is an empty table: no constructor has to touch its pages.
template <std::size_t kMaxEntries>
class KeyTable {
 public:
  static constexpr std::uint32_t kMissing = 0xFFFFFFFF;

  [[nodiscard]] std::uint32_t find(std::uint64_t key) const noexcept {
    for (std::size_t at = key & mask();; at = (at + 1) & mask()) {
      if (entries_[at].key == key) return entries_[at].value;
      if (entries_[at].key == 0) return kMissing;
    }
  }

  /// False if half of the entries are taken: call grow() or clear() first.
  [[nodiscard]] bool has_room() const noexcept { return used_ * 2 < mask(); }

  /// `key` is not in the table, and has_room().
  void insert(std::uint64_t key, std::uint32_t value) noexcept {
    std::size_t at = key & mask();
    while (entries_[at].key != 0) at = (at + 1) & mask();
    entries_[at] = {key, value};
    ++used_;
  }

  /// `key` is in the table.
  void replace(std::uint64_t key, std::uint32_t value) noexcept {
    std::size_t at = key & mask();
    while (entries_[at].key != key) at = (at + 1) & mask();
    entries_[at].value = value;
  }

  /// Bytes that doubling would add; 0 at the maximum.
  [[nodiscard]] std::size_t growth() const noexcept {
    return (mask() + 1) * 2 <= kMaxEntries ? (mask() + 1) * sizeof(Entry) : 0;
  }

  /// Removes all entries; doubles the size if `grow` and growth() > 0.
  void clear(bool grow) noexcept {
    std::memset(entries_, 0, (mask() + 1) * sizeof(Entry));
    used_ = 0;
    if (grow && growth() > 0) ++doublings_;
  }

 private:
  static constexpr std::size_t kFirstEntries = 512;
  static_assert(kFirstEntries <= kMaxEntries);

  struct Entry {
    std::uint64_t key;
    std::uint32_t value;
  };

  [[nodiscard]] std::size_t mask() const noexcept { return (kFirstEntries << doublings_) - 1; }

  std::size_t doublings_;
  std::size_t used_;
  Entry entries_[kMaxEntries];
};

}  // namespace tidemark::process
