// When a device's program was in which phase: runs of allocations of one phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "store/store.h"

namespace tidemark {

/// From the first allocation of a run up to, not including, the first of the next.
struct PhaseSpan {
  Phase phase = Phase::other;  ///< forward, backward (with its recomputation) or optimizer
  std::uint64_t from = 0;      ///< index into Store::live_changes
  std::uint64_t to = 0;        ///< likewise; of the last span the end
};

/// In order of time. What is allocated in other phases belongs to the run under way: a batch that is copied during the
/// backward pass does not end it. Nothing before the first allocation of one of the three.
[[nodiscard]] std::vector<PhaseSpan> phase_spans(const Store& store, const Attribution& attribution,
                                                 std::size_t device);

}  // namespace tidemark
