// Memory that grows for several steps and is then freed at once, again and again: a sawtooth, such as the outputs of an
// epoch in a list. It is no leak, but it decides the peak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/earlier_frees.h"
#include "analyze/leaks/growth.h"
#include "analyze/steps/training_steps.h"
#include "base/ids.h"
#include "store/store.h"

namespace tidemark {

/// The blocks of one stack on one device that outlive their step and are freed together.
struct KeptTogether {
  StackId stack;
  std::uint32_t steps = 0;          ///< maximum number of steps whose blocks are freed in one step
  std::uint32_t times = 0;          ///< number of steps that free blocks of several steps
  std::vector<EarlierFree> blocks;  ///< as if each were freed when its step ends; in order of birth for each free
};

/// Stacks with blocks of at least four steps that are freed in one step, at least twice; blocks alive at the end count
/// with them. `attribution`: of this store; blocks of the model's tensors are excluded. null: nothing is excluded.
[[nodiscard]] std::vector<KeptTogether> find_kept_together(const Store& store, const TrainingSteps& steps,
                                                           std::size_t device, const Attribution* attribution,
                                                           const BlockFilter& filter = {});

struct KeptAtOnce {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// The most bytes that are kept at one time.
[[nodiscard]] KeptAtOnce most_at_once(const Store& store, const std::vector<EarlierFree>& kept);

}  // namespace tidemark
