// State of both writer and reader of a recording during a pass over its events: live blocks by slot, and the predicted
// next value of each column. Both sides make the same calls in the same order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace tidemark {

/// Not thread-safe. take() and give_back() cost a few nanoseconds whatever the number of slots.
class SlotPool {
 public:
  /// The lowest free number; count() grows by one if all below it are used.
  std::uint32_t take() {
    while (lowest_group_ < groups_.size() && groups_[lowest_group_] == 0) ++lowest_group_;
    if (lowest_group_ == groups_.size()) return count_++;
    const std::size_t block = lowest_group_ * 64 + lowest_bit(groups_[lowest_group_]);
    const std::size_t word = block * 64 + lowest_bit(blocks_[block]);
    const std::size_t slot = word * 64 + lowest_bit(words_[word]);
    clear_lowest(words_[word]);
    if (words_[word] == 0) clear_lowest(blocks_[block]);
    if (blocks_[block] == 0) clear_lowest(groups_[lowest_group_]);
    return static_cast<std::uint32_t>(slot);
  }

  /// `slot` must be in use.
  void give_back(std::uint32_t slot) {
    const std::size_t word = slot / 64;
    const std::size_t block = word / 64;
    const std::size_t group = block / 64;
    if (group >= groups_.size()) {
      groups_.resize(group + 1);
      blocks_.resize((group + 1) * 64);
    }
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= std::uint64_t{1} << (slot % 64);
    blocks_[block] |= std::uint64_t{1} << (word % 64);
    groups_[group] |= std::uint64_t{1} << (block % 64);
    if (group < lowest_group_) lowest_group_ = group;
  }

  /// Slots ever handed out: every slot number is below this.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  static unsigned lowest_bit(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
  static void clear_lowest(std::uint64_t& bits) { bits &= bits - 1; }

  // Bit n of words_: slot n is free; bit n of blocks_: word n is not zero; bit n of groups_: word n of blocks_ is not
  // zero. One group covers 262,144 slots; lowest_group_ is at or below the first group that is not zero.
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> blocks_;
  std::vector<std::uint64_t> groups_;
  std::size_t lowest_group_ = 0;
  std::uint32_t count_ = 0;
};

/// The rules are specified in docs/format.md ("State"): change them only with a new format version.
class EventState {
 public:
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint32_t device = 0;  ///< index into devices()
    bool alive = false;
  };
  struct DeviceTotals {
    Device device;
    std::uint64_t allocated = 0;
    std::uint64_t reserved = 0;
  };

  std::uint64_t time_ns = 0;        ///< of the previous event
  std::uint32_t thread_code = 0;    ///< of the previous event; id + 1, 0 = none
  std::uint32_t device = 0;         ///< of the previous event that stored or repeated one; index 0 is the CPU
  std::uint32_t freed_slot = 0;     ///< of the previous free with a slot
  std::uint64_t allocated_at = 0;   ///< address of the previous allocation
  std::uint64_t sequence = 0;       ///< of the previous allocation or failure
  std::uint64_t node_sequence = 0;  ///< of the previous one with a node

  /// Index of a device, new ones at the end. Consecutive events are mostly of one device: those cost a comparison.
  std::uint32_t device_index(Device wanted) {
    if (wanted == devices_[looked_up_].device) return looked_up_;
    const auto key = static_cast<std::uint16_t>((static_cast<std::uint8_t>(wanted.type) << 8) |
                                                static_cast<std::uint8_t>(wanted.index));
    const auto [entry, is_new] = index_of_.try_emplace(key, static_cast<std::uint32_t>(devices_.size()));
    if (is_new) devices_.push_back({wanted, 0, 0});
    looked_up_ = entry->second;
    return looked_up_;
  }
  [[nodiscard]] DeviceTotals& totals(std::uint32_t index) { return devices_[index]; }

  /// Predicted address of a block of this size: the latest freed address of this size (strictly: of this hash).
  /// Allocators often reuse an exact fit.
  [[nodiscard]] std::uint64_t expected_address(std::uint64_t size) const { return freed_at_[hash<kFreedBits>(size)]; }

  /// Addresses of earlier allocations that may repeat out of the predicted order: malloc under Python uses the same two
  /// thousand or so in an irregular order, and their numbers here are shorter than the addresses.
  static constexpr std::uint64_t kRecentAddresses = 4096;
  [[nodiscard]] static std::uint64_t recent_index(std::uint64_t address) { return hash<kRecentBits>(address); }
  [[nodiscard]] std::uint64_t recent_address(std::uint64_t index) const { return recent_[index]; }

  using ExpectedAddresses = std::array<std::uint64_t, std::size_t{1} << 10>;
  using RecentAddresses = std::array<std::uint64_t, kRecentAddresses>;
  [[nodiscard]] const ExpectedAddresses& expected_addresses() const { return freed_at_; }
  [[nodiscard]] const RecentAddresses& recent_addresses() const { return recent_; }
  /// Every slot number in use is below this.
  [[nodiscard]] std::size_t slot_count() const { return blocks_.size(); }
  [[nodiscard]] const std::vector<DeviceTotals>& devices() const { return devices_; }

  /// For a state without blocks: sets the live blocks, by slot in ascending order, and the tables.
  template <typename Blocks>
  void restore(const Blocks& blocks, const ExpectedAddresses& expected, const RecentAddresses& recent) {
    for (const auto& [slot, block] : blocks) {
      while (pool_.count() <= slot) pool_.take();
      blocks_.resize(pool_.count());
      blocks_[slot] = block;
    }
    for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
      if (!blocks_[slot].alive) pool_.give_back(slot);
    }
    freed_at_ = expected;
    recent_ = recent;
  }

  std::uint32_t allocate(std::uint64_t address, std::uint64_t size, std::uint32_t on_device) {
    const std::uint32_t slot = pool_.take();
    if (slot == blocks_.size()) blocks_.emplace_back();
    blocks_[slot] = {address, size, on_device, true};
    allocated_at = address;
    recent_[recent_index(address)] = address;
    return slot;
  }

  /// The block in a slot, or null if none is alive there.
  [[nodiscard]] const Block* live(std::uint64_t slot) const {
    return slot < blocks_.size() && blocks_[slot].alive ? &blocks_[slot] : nullptr;
  }

  /// The block must be alive.
  void free(std::uint32_t slot) {
    Block& block = blocks_[slot];
    block.alive = false;
    freed_at_[hash<kFreedBits>(block.size)] = block.address;
    freed_slot = slot;
    pool_.give_back(slot);
  }

 private:
  static constexpr unsigned kFreedBits = 10;
  static constexpr unsigned kRecentBits = 12;
  static_assert(std::tuple_size_v<ExpectedAddresses> == std::size_t{1} << kFreedBits);
  static_assert(kRecentAddresses == std::uint64_t{1} << kRecentBits);

  /// Fibonacci hashing: the top bits of the product depend on all bits of the value.
  template <unsigned kBits>
  static std::uint64_t hash(std::uint64_t value) {
    return (value * 0x9E37'79B9'7F4A'7C15U) >> (64 - kBits);
  }

  std::vector<Block> blocks_;  // by slot
  SlotPool pool_;
  std::unordered_map<std::uint16_t, std::uint32_t> index_of_{{0, 0}};  // by type and index
  std::vector<DeviceTotals> devices_ = {{Device{}, 0, 0}};
  std::uint32_t looked_up_ = 0;  // by the last device_index()
  ExpectedAddresses freed_at_{};
  RecentAddresses recent_{};
};

}  // namespace tidemark
