// Whose memory it is that grows.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyze/attribution/groups.h"
#include "analyze/leaks/growth.h"

namespace tidemark {

/// What leaks leave in blocks that have something in common.
struct OwnedGrowth {
  BlockOwner owner;
  double bytes_per_step = 0;     ///< of each leak the share that they have of its held bytes
  std::uint64_t held_bytes = 0;  ///< at the last step's start, in blocks born after warm-up
  std::uint64_t held_blocks = 0;
};

/// The same growth by one property; rows and the rest add up to the leaks.
struct GrowthByOwner {
  OwnerKind kind = OwnerKind::category;
  std::vector<OwnedGrowth> rows;  ///< fastest first
  std::uint64_t other_rows = 0;   ///< beyond the listed ones
  OwnedGrowth other;              ///< the sum of those; without a name
};

/// Adds up leaks of one device. `groups` must outlive it.
class GrowthSums {
 public:
  explicit GrowthSums(const OwnerGroups& groups) : groups_(groups) {}

  /// `held`: the blocks of a leak that are held.
  void add(std::span<const StepSpan> held, double bytes_per_step);
  /// Lists `top` rows; 0 = all.
  [[nodiscard]] GrowthByOwner finish(OwnerKind kind, std::size_t top) const;

 private:
  const OwnerGroups& groups_;
  std::unordered_map<std::uint32_t, OwnedGrowth> sums_;  // by group
};

}  // namespace tidemark
