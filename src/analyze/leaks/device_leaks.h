// The blocks of one device that outlive steps, by stack, and which of them grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/common/block_filter.h"
#include "analyze/leaks/growth.h"
#include "analyze/steps/training_steps.h"
#include "base/ids.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// The blocks of a stack, or of a size without a stack, that were alive at some boundary.
struct LeakGroup {
  std::vector<StackId> stacks;                   ///< several: they leak at one source line, the fastest first
  std::optional<std::uint64_t> requested_bytes;  ///< without a stack; none: all sizes
  std::vector<StepSpan> spans;
};

struct GroupGrowth {
  LeakGroup group;
  Growth growth;
};

/// All growth of the chosen blocks on a device (an index into Store::devices), leaks or not, the fastest first. Leaks
/// of one kind whose call sites are one source line are joined where their blocks leak together too.
[[nodiscard]] std::vector<GroupGrowth> find_device_growth(const Store& store, Symbols& symbols,
                                                          const TrainingSteps& steps, std::uint32_t warmup,
                                                          std::size_t device, const BlockFilter& filter = {});

}  // namespace tidemark
