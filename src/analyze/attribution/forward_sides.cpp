#include "analyze/attribution/forward_sides.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace tidemark {

bool is_autograd_thread(const Definitions& definitions, ThreadId thread) {
  return thread.value < definitions.threads.size() &&
         definitions.threads[thread.value].name.starts_with("pt_autograd_");
}

HomeThreads::HomeThreads(const Store& store) : store_(store) {
  for (std::uint32_t thread = 0; thread < store.definitions.threads.size(); ++thread) {
    is_autograd_.push_back(is_autograd_thread(store.definitions, ThreadId{thread}));
    works_for_.push_back(ThreadId{thread});
  }
}

ThreadId HomeThreads::add(std::size_t block, Phase phase) {
  const Blocks& blocks = store_.blocks;
  const ThreadId thread = blocks.thread[block];
  if (thread.value >= works_for_.size()) return thread;
  const std::vector<AutogradNode>& nodes = store_.definitions.autograd_nodes;
  const AutogradNodeId node = blocks.node.empty() ? AutogradNodeId{} : blocks.node[block];
  const ThreadId made_by = node.value < nodes.size() ? nodes[node.value].forward_thread : ThreadId{};
  if (made_by.value < works_for_.size() && made_by != thread) {
    works_for_[thread.value] = works_for_[made_by.value];
  } else if (is_autograd_[thread.value] && works_for_[thread.value] == thread && last_forward_.valid()) {
    return last_forward_;
  }
  const ThreadId home = works_for_[thread.value];
  if (phase == Phase::forward) last_forward_ = home;
  return home;
}

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

const std::vector<ForwardSides::Made>* ForwardSides::made_beside(AutogradNodeId node,
                                                                 std::uint64_t node_sequence) const {
  if (node_sequence == std::numeric_limits<std::uint64_t>::max()) return nullptr;
  if (node.value >= store_.definitions.autograd_nodes.size()) return nullptr;
  const ThreadId thread = store_.definitions.autograd_nodes[node.value].forward_thread;
  return thread.value < made_.size() ? &made_[thread.value] : nullptr;
}

std::vector<ForwardSides::Made>::const_iterator ForwardSides::first_after(const std::vector<Made>& made,
                                                                          std::uint64_t node_sequence) {
  return std::upper_bound(made.begin(), made.end(), node_sequence,
                          [](std::uint64_t number, const Made& entry) { return number < entry.sequence; });
}

BlockId ForwardSides::of(AutogradNodeId node, std::uint64_t node_sequence, BlockId block) const {
  const std::vector<Made>* const made = made_beside(node, node_sequence);
  if (made == nullptr) return {};
  const auto after = first_after(*made, node_sequence);
  if (after != made->end() && after->sequence == node_sequence + 1 && after->block < block) return after->block;
  return after == made->begin() ? BlockId{} : std::prev(after)->block;
}

BlockId ForwardSides::after(AutogradNodeId node, std::uint64_t node_sequence) const {
  const std::vector<Made>* const made = made_beside(node, node_sequence);
  if (made == nullptr) return {};
  const auto after = first_after(*made, node_sequence);
  return after == made->end() ? BlockId{} : after->block;
}

}  // namespace tidemark
