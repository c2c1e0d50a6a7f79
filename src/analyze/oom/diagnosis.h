// The causes of a failed request, from its size and the state of the memory, and what would have let it succeed.
#pragma once

#include "analyze/attribution/attribution.h"
#include "analyze/oom/explain.h"
#include "analyze/oom/memory.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// Fills stop, limit, missing, outside_grew, findings and cause, from the state and the leaks that `failure` holds.
/// `event` is the last of the failure's requests.
void find_causes(const Store& store, const OutOfMemory& event, OomFailure& failure);

/// Fills leak_verdict, step_source, step_count, leaked and leaks: analyze_leaks() on what had happened by then. Of
/// blocks that each step replaces by a larger one, only the growth counts as leaked.
/// `attribution`: of the store; null: nothing says which leaks are of one object.
void find_leaks(const Store& store, Symbols& symbols, const Attribution* attribution, const OutOfMemory& event,
                OomFailure& failure);

/// Fills failure.fixes; find_causes() comes first. `memory`: none where segments are not known.
///
/// Of each stack the newest blocks are taken, as few as do; of all stacks the three are listed that this costs least,
/// but of more than the request only one.
void find_fixes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure);

}  // namespace tidemark
