// Which changes would have let a failed request pass, worked out on the segment map.
#pragma once

#include "analyze/oom/explain.h"
#include "analyze/oom/memory.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// Fills failure.fixes; find_causes() comes first. `memory`: none where segments are not known.
///
/// Of each stack the newest blocks are taken, as few as do; of all stacks the three are listed that this costs least,
/// but of more than the request only one.
void find_fixes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure);

}  // namespace tidemark
