// Steps of the training loop as the program itself names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// What occurs less often is not taken for training steps, whether names or allocations tell of it.
inline constexpr std::size_t kFewestSteps = 4;

struct AnnotatedSteps {
  std::vector<std::uint64_t> starts_ns;  ///< increasing; empty: no name tells steps
  StringId name;                         ///< of the first
  /// They are calls of an optimizer, of which a step may have several; otherwise the names say "step".
  bool of_optimizer = false;
};

/// The steps that `tidemark plan` counted in the program ("Tidemark.step#2"), however few. Otherwise ranges or marks
/// that occur at least kFewestSteps times and are named, whatever number follows, in this order of preference: as
/// PyTorch's profiler does ("ProfilerStep#12"), as a step ("step", "train_step 7", "iteration", "batch"), or as
/// PyTorch's optimizers do ("Optimizer.step#AdamW.step").
[[nodiscard]] AnnotatedSteps annotated_steps(const Definitions& definitions);

}  // namespace tidemark
