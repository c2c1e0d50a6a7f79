// Blocks that may be held longer than necessary, found by their lifetimes alone; a device's peak without them, and the
// threshold for headline advice: smaller savings are listed as facts, never as advice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analyze/steps/training_steps.h"
#include "base/units.h"
#include "store/store.h"

namespace tidemark {

/// A block that would be absent in the states after `from` and up to `to` steps of Store::live_changes, if it were
/// freed earlier.
struct EarlierFree {
  static constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();  ///< of the recording

  BlockId block;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<std::uint64_t> bytes = {};  ///< bytes of the block that would be freed; nullopt: the whole block
  bool added = false;                       ///< it would be there in these states instead: made earlier

  [[nodiscard]] std::uint64_t size(const Store& store) const { return bytes.value_or(store.blocks.size[block.value]); }
  [[nodiscard]] bool covers(std::uint64_t change_count) const { return from < change_count && change_count <= to; }
};

/// A block away for all of its life.
[[nodiscard]] EarlierFree never_there(const Store& store, BlockId block);

/// Blocks that are freed only after their replacement was allocated, one training step later, with the end of their own
/// step as the earlier free. Blocks are matched by stack and by their number in the step. This must happen at least
/// three times, and to most blocks; then the last block, which nothing replaces, counts as well. Blocks without a stack
/// are left out.
[[nodiscard]] std::vector<EarlierFree> kept_into_next_step(const Store& store, std::size_t device,
                                                           const TrainingSteps& steps);

/// Blocks that are freed after another allocation of the device and before the next, with the time right before it.
[[nodiscard]] std::vector<EarlierFree> freed_after_allocation(const Store& store, std::size_t device);

struct ReducedPeak {
  std::uint64_t bytes = 0;             ///< allocated, at most
  std::optional<std::uint64_t> at_ns;  ///< first time of the peak; nullopt if nothing was allocated
};

/// The peak of allocated memory if these blocks had been absent in these times, with everything else unchanged. A block
/// may be listed several times, for times that do not overlap. Time O(n log n) for n frees.
[[nodiscard]] ReducedPeak reduced_peak(const Store& store, std::size_t device,
                                       const std::vector<EarlierFree>& earlier_frees);

/// Whether advice that lowers a peak by `saving` bytes at most may stand out: at least 1% of the peak, and 1 MiB.
[[nodiscard]] constexpr bool is_worth_advice(std::uint64_t saving, std::uint64_t peak) {
  return saving >= kMiB && saving >= peak / 100 + (peak % 100 != 0 ? 1 : 0);
}

}  // namespace tidemark
