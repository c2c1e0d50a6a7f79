// Causes of a failed request, from its size and the state of the memory, and fixes for it.
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

/// Fills leak_verdict, step_source, step_count, leaked and leaks: analyze_leaks() on the events until the failure. For
/// blocks that each step replaces by a larger one, only the growth counts as leaked. `attribution`: of the store; null:
/// leaks are not grouped into objects.
void find_leaks(const Store& store, Symbols& symbols, const Attribution* attribution, const OutOfMemory& event,
                OomFailure& failure);

/// Fills failure.fixes; call find_causes() first. `memory`: nullopt if segments are unknown.
///
/// From each stack, the newest blocks are taken, as few as suffice; the three stacks with the smallest totals are
/// listed, but at most one whose total exceeds the request.
void find_fixes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure);

}  // namespace tidemark
