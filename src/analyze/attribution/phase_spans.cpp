#include "analyze/attribution/phase_spans.h"

#include <optional>

namespace tidemark {
namespace {

std::optional<Phase> span_phase(Phase phase) {
  switch (phase) {
    case Phase::forward:
    case Phase::backward:
    case Phase::optimizer:
      return phase;
    case Phase::recomputation:
      return Phase::backward;
    case Phase::data:
    case Phase::other:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PhaseSpan> phase_spans(const Store& store, const Attribution& attribution, std::size_t device) {
  std::vector<PhaseSpan> spans;
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (store.blocks.device[block] != device) continue;
    const auto phase = span_phase(attribution.blocks[block].phase);
    if (!phase || (!spans.empty() && spans.back().phase == *phase)) continue;
    const std::uint64_t birth = store.blocks.birth_change[block];
    if (!spans.empty()) spans.back().to = birth;
    spans.push_back({*phase, birth, store.live_changes.size()});
  }
  return spans;
}

}  // namespace tidemark
