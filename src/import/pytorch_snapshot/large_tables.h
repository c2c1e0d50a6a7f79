// Tables for the millions of items of a large snapshot: columns that grow, and two hash tables.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tidemark::pytorch {

// ---- columns ----

/// Requests large pages, so that filling a column takes a few dozen of them instead of tens of thousands. A refusal is
/// harmless.
inline void use_large_pages(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kPage * kPage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

/// Grows a full column. `share_read` of the file was read: a large column gets about the capacity that the whole file
/// will need, to avoid copies. The capacity is not written, so it costs no memory yet.
template <typename T>
[[gnu::noinline]] void grow_column(std::vector<T>& column, double share_read) {
  constexpr std::size_t kLarge = 1U << 16;
  const std::size_t size = column.size();
  const double growth = size < kLarge ? 2.0 : std::clamp(1.1 / std::max(share_read, 0.01), 1.25, 64.0);
  column.reserve(std::max<std::size_t>(64, static_cast<std::size_t>(static_cast<double>(size) * growth)));
  if (size >= kLarge) use_large_pages(column.data(), column.capacity() * sizeof(T));
}

/// Makes room for one more.
template <typename T>
void make_room(std::vector<T>& column, double share_read) {
  if (column.size() == column.capacity()) grow_column(column, share_read);
}

// ---- hash tables ----

/// Spreads every bit of `value` over all bits.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15U;  // 2^64 / φ, odd
  value = (value ^ (value >> 32)) * kGoldenRatio;
  value = (value ^ (value >> 29)) * kGoldenRatio;
  return value ^ (value >> 32);
}

/// Not thread-safe.
class IdIndex {
 public:
  IdIndex() : slots_(kSmallest) {}

  /// The id for which `same(id)` holds among those with this hash; otherwise stores and returns the id from `make()`.
  template <typename Same, typename Make>
  std::uint32_t find_or_make(std::uint64_t hash, const Same& same, const Make& make) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id != kFree) {
      if (slots_[at].hash == hash && same(slots_[at].id)) return slots_[at].id;
      at = (at + 1) & (slots_.size() - 1);
    }
    const std::uint32_t id = make();
    slots_[at] = {hash, id};
    if (++used_ * 2 > slots_.size()) grow();
    return id;
  }

 private:
  static constexpr std::size_t kSmallest = 64;         // a power of two, as every size
  static constexpr std::uint32_t kFree = 0xFFFF'FFFF;  // no id

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t id = kFree;
  };

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id == kFree) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].id != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

/// Open addressing with linear probing, at most half full; erasing moves later entries back, without tombstones. The
/// hash has a random factor, so that untrusted files cannot provoke collisions. Not thread-safe.
class AddressTable {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  AddressTable()
      : slots_(kFirstSize), factor_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}() | 1) {}

  /// The index of `address`, or kNone.
  [[nodiscard]] std::uint32_t find(std::uint64_t address) const {
    for (std::size_t slot = home(address);; slot = (slot + 1) & mask_) {
      if (slots_[slot].value == kNone) return kNone;
      if (slots_[slot].address == address) return slots_[slot].value;
    }
  }

  /// Adds `address`, which must be absent. `value` is not kNone.
  void insert(std::uint64_t address, std::uint32_t value) {
    if (2 * used_ > mask_) grow();
    place(address, value);
    ++used_;
  }

  /// Removes `address`; does nothing if it is absent.
  void erase(std::uint64_t address) {
    std::size_t hole = home(address);
    while (slots_[hole].value == kNone || slots_[hole].address != address) {
      if (slots_[hole].value == kNone) return;
      hole = (hole + 1) & mask_;
    }
    for (std::size_t next = (hole + 1) & mask_; slots_[next].value != kNone; next = (next + 1) & mask_) {
      const std::size_t wanted = home(slots_[next].address);
      if (((next - wanted) & mask_) >= ((next - hole) & mask_)) {
        slots_[hole] = slots_[next];
        hole = next;
      }
    }
    slots_[hole].value = kNone;
    --used_;
  }

  [[nodiscard]] std::size_t size() const { return used_; }

 private:
  struct Slot {
    std::uint64_t address = 0;
    std::uint32_t value = kNone;
  };
  static constexpr std::size_t kFirstSize = 1024;

  [[nodiscard]] std::size_t home(std::uint64_t address) const {
    std::uint64_t hash = address * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 32)) * factor_;
    return static_cast<std::size_t>(hash >> shift_);
  }

  void place(std::uint64_t address, std::uint32_t value) {
    std::size_t slot = home(address);
    while (slots_[slot].value != kNone) slot = (slot + 1) & mask_;
    slots_[slot] = {address, value};
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.value != kNone) place(slot.address, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::size_t mask_ = kFirstSize - 1;
  int shift_ = 64 - std::countr_zero(kFirstSize);
  std::uint64_t factor_;
};

}  // namespace tidemark::pytorch
