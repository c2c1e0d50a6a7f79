// (device, address) of a live block → its slot: how the writer finds the allocation that a free belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark {

/// Open addressing with linear probing, at most half full. Erasing shifts later entries back into the gap, so that no
/// tombstones slow look-ups down in a long recording. Not thread-safe.
class AddressMap {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  AddressMap() : entries_(kInitialEntries), mask_(kInitialEntries - 1) {}

  /// The slot stored for the key, or kAbsent.
  [[nodiscard]] std::uint32_t find(std::uint64_t address, std::uint32_t device) const {
    for (std::size_t at = home(address, device);; at = next(at)) {
      const Entry& entry = entries_[at];
      if (entry.slot == kAbsent || entry.matches(address, device)) return entry.slot;
    }
  }

  /// Adds a key that is absent. `slot` is not kAbsent.
  void insert(std::uint64_t address, std::uint32_t device, std::uint32_t slot) {
    if ((count_ + 1) * 2 > entries_.size()) grow();
    place({address, device, slot});
    ++count_;
  }

  /// Removes the key and returns its slot, or kAbsent if it is absent.
  std::uint32_t take(std::uint64_t address, std::uint32_t device) {
    std::size_t gap = home(address, device);
    while (entries_[gap].slot != kAbsent && !entries_[gap].matches(address, device)) gap = next(gap);
    const std::uint32_t slot = entries_[gap].slot;
    if (slot == kAbsent) return kAbsent;
    for (std::size_t at = next(gap); entries_[at].slot != kAbsent; at = next(at)) {
      // An entry may move into the gap unless that would put it before the place where its search begins.
      const std::size_t wanted = home(entries_[at].address, entries_[at].device);
      if (((at - wanted) & mask_) < ((at - gap) & mask_)) continue;
      entries_[gap] = entries_[at];
      gap = at;
    }
    entries_[gap].slot = kAbsent;
    --count_;
    return slot;
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  struct Entry {
    std::uint64_t address = 0;
    std::uint32_t device = 0;
    std::uint32_t slot = kAbsent;

    [[nodiscard]] bool matches(std::uint64_t a, std::uint32_t d) const { return address == a && device == d; }
  };
  static constexpr std::size_t kInitialEntries = 1024;

  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & mask_; }
  [[nodiscard]] std::size_t home(std::uint64_t address, std::uint32_t device) const {
    // Fibonacci hashing: the high bits of the product depend on all bits of the key.
    const std::uint64_t hash = (address ^ (std::uint64_t{device} << 52)) * 0x9E37'79B9'7F4A'7C15U;
    return static_cast<std::size_t>(hash >> 24) & mask_;
  }
  void place(const Entry& entry) {
    std::size_t at = home(entry.address, entry.device);
    while (entries_[at].slot != kAbsent) at = next(at);
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    for (const Entry& entry : old) {
      if (entry.slot != kAbsent) place(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
  std::size_t count_ = 0;
};

}  // namespace tidemark
