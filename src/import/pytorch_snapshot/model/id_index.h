// Finds the id of something that is stored elsewhere: open addressing over hashes and ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::pytorch {

/// Spreads what differs anywhere in `value` over all bits.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15U;  // 2^64 / φ, odd
  value = (value ^ (value >> 32)) * kGoldenRatio;
  value = (value ^ (value >> 29)) * kGoldenRatio;
  return value ^ (value >> 32);
}

/// Not thread-safe.
class IdIndex {
 public:
  IdIndex() : places_(kSmallest) {}

  /// The id for which `same(id)` holds among those with this hash, else `make()`'s, which is kept.
  template <typename Same, typename Make>
  std::uint32_t find_or_make(std::uint64_t hash, const Same& same, const Make& make) {
    std::size_t at = hash & (places_.size() - 1);
    while (places_[at].id != kFree) {
      if (places_[at].hash == hash && same(places_[at].id)) return places_[at].id;
      at = (at + 1) & (places_.size() - 1);
    }
    const std::uint32_t id = make();
    places_[at] = {hash, id};
    if (++used_ * 2 > places_.size()) grow();
    return id;
  }

 private:
  static constexpr std::size_t kSmallest = 64;         // a power of two, as every size
  static constexpr std::uint32_t kFree = 0xFFFF'FFFF;  // no id

  struct Place {
    std::uint64_t hash = 0;
    std::uint32_t id = kFree;
  };

  void grow() {
    std::vector<Place> old(places_.size() * 2);
    old.swap(places_);
    for (const Place& place : old) {
      if (place.id == kFree) continue;
      std::size_t at = place.hash & (places_.size() - 1);
      while (places_[at].id != kFree) at = (at + 1) & (places_.size() - 1);
      places_[at] = place;
    }
  }

  std::vector<Place> places_;
  std::size_t used_ = 0;
};

}  // namespace tidemark::pytorch
