// Allocated bytes over time by the call site that allocated them, or by what attribution tells of them.
#pragma once

#include <cstddef>

#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/timeline/timeline.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

inline constexpr std::size_t kMaxLayers = 8;  ///< that a plot has colours for, beside categories

/// Adds to TimelineSeries::splits of the timeline of this store, with at most `top` call sites for each device: those
/// that held most at its peak. `filter` is the timeline's.
void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top = kMaxLayers,
                    const BlockFilter& filter = {});

/// The same by owner: of categories and phases all.
void add_owners(Timeline& timeline, const Store& store, OwnerKind by, const OwnerGroups& groups,
                const BlockFilter& filter = {}, std::size_t top = kMaxLayers);

}  // namespace tidemark
