// Blocks that are held longer than it may be necessary, found by their lifetimes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analyze/steps/training_steps.h"
#include "store/store.h"

namespace tidemark {

/// A block that would be gone in the states after `from` and up to `to` steps of Store::live_changes, were it freed
/// earlier.
struct EarlierFree {
  static constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();  ///< of the recording

  BlockId block;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<std::uint64_t> bytes = {};  ///< of the block that would be gone; none: all of it

  [[nodiscard]] std::uint64_t size(const Store& store) const { return bytes.value_or(store.blocks.size[block.value]); }
  [[nodiscard]] bool covers(std::uint64_t change_count) const { return from < change_count && change_count <= to; }
};

/// Those that are freed only after their replacement was allocated, one training step later, from the end of the step
/// in which they were allocated. Blocks are matched by stack and by their number in the step. That counts where it
/// happens at least three times, and to most; then the last block, which nothing replaces, counts as well. Blocks
/// without a stack are left out.
[[nodiscard]] std::vector<EarlierFree> kept_into_next_step(const Store& store, std::size_t device,
                                                           const TrainingSteps& steps);

/// Those that are freed after another allocation of the device and before the next, from right before it.
[[nodiscard]] std::vector<EarlierFree> freed_after_allocation(const Store& store, std::size_t device);

}  // namespace tidemark
