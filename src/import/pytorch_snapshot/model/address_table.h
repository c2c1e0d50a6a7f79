// A hash table from addresses to indices, for millions of inserts and erases a second.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tidemark::pytorch {

/// Open addressing with linear probing, at most half full; erasing moves the followers back, so nothing is left behind.
/// The hash has a random factor: addresses come from files, and no file may choose its collisions. Not thread-safe.
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

  /// Adds `address`, which is not there yet. `value` is not kNone.
  void insert(std::uint64_t address, std::uint32_t value) {
    if (2 * used_ > mask_) grow();
    place(address, value);
    ++used_;
  }

  /// Removes `address`; does nothing where it is not there.
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
