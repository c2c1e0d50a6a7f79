#include "analyze/attribution/forward_sides.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace tidemark {

ForwardSides::ForwardSides(const Store& store, const PhaseRuns& runs) : store_(store) {
  const Blocks& blocks = store.blocks;
  if (blocks.sequence.empty()) return;
  made_.resize(store.definitions.threads.size());
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const Phase phase = runs.run(block).phase;
    const ThreadId thread = blocks.thread[block];
    const bool makes_nodes = phase == Phase::forward || phase == Phase::recomputation;
    if (!makes_nodes || thread.value >= made_.size()) continue;
    std::vector<Made>& made = made_[thread.value];
    const std::uint64_t sequence = blocks.sequence[block];
    if (!made.empty() && sequence < made.back().sequence) continue;  // damaged
    made.push_back({sequence, BlockId{static_cast<std::uint32_t>(block)}});
  }
}

BlockId ForwardSides::of(AutogradNodeId node, std::uint64_t node_sequence, BlockId block) const {
  if (node_sequence == std::numeric_limits<std::uint64_t>::max() ||
      node.value >= store_.definitions.autograd_nodes.size())
    return {};
  const ThreadId thread = store_.definitions.autograd_nodes[node.value].forward_thread;
  if (thread.value >= made_.size()) return {};
  const std::vector<Made>& made = made_[thread.value];
  const auto after = std::upper_bound(made.begin(), made.end(), node_sequence,
                                      [](std::uint64_t number, const Made& entry) { return number < entry.sequence; });
  if (after != made.end() && after->sequence == node_sequence + 1 && after->block < block) return after->block;
  return after == made.begin() ? BlockId{} : std::prev(after)->block;
}

}  // namespace tidemark
