#include "analyze/attribution/phases.h"

#include <cstddef>

#include "analyze/attribution/autograd_threads.h"

namespace tidemark {

Phase phase_of(const Definitions& definitions, const StackFacts& stack, AutogradNodeId node, ThreadId thread) {
  const bool in_backward = node.valid() || is_autograd_thread(definitions, thread);
  return in_backward ? stack.phase_in_node : stack.phase;
}

std::vector<Phase> phases_of_blocks(const Store& store, const std::vector<StackFacts>& stacks) {
  const Blocks& blocks = store.blocks;
  std::vector<Phase> phases;
  phases.reserve(blocks.count());
  bool after_forward = false;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const StackId stack = blocks.stack[block];
    const AutogradNodeId node = blocks.node.empty() ? AutogradNodeId{} : blocks.node[block];
    const StackFacts facts = stack.value < stacks.size() ? stacks[stack.value] : StackFacts{};
    Phase phase = phase_of(store.definitions, facts, node, blocks.thread[block]);
    if (!stack.valid() && !blocks.thread[block].valid() && after_forward) phase = Phase::backward;
    if (phase != Phase::other) after_forward = phase != Phase::optimizer && phase != Phase::data;
    phases.push_back(phase);
  }
  return phases;
}

}  // namespace tidemark
