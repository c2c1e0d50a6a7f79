// Allocated bytes over time by the call site that allocated them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/common/stack_names.h"
#include "analyze/timeline.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

inline constexpr std::size_t kCallSiteLayers = 8;  ///< that a plot has colours for

/// Sets TimelineSeries::by_call_site of the timeline of this store, with at most `top` call sites for each device:
/// those that held most at its peak.
void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top = kCallSiteLayers);

}  // namespace tidemark
