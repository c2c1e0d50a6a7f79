// The phases of an attribution that a test made by hand.
#pragma once

#include <vector>

#include "analyze/attribution/phase_runs.h"

namespace tidemark::testing {

/// Expected Attribution::phases for these blocks.
inline std::vector<PhaseSpan> phase_spans_of(const Store& store, const Attribution& attribution) {
  std::vector<Phase> phases;
  for (const Owner& owner : attribution.blocks) phases.push_back(owner.phase);
  return phase_spans(store, find_phase_runs(store, phases));
}

}  // namespace tidemark::testing
