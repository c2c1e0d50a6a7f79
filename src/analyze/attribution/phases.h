// The phase of each block by the frames of its stack, the autograd node and the thread that allocated it.
#pragma once

#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/stack_facts.h"
#include "store/store.h"

namespace tidemark {

[[nodiscard]] Phase phase_of(const Definitions& definitions, const StackFacts& stack, AutogradNodeId node,
                             ThreadId thread);

/// By BlockId. Where neither node nor thread is known (PyTorch's snapshots), a block without a stack between those that
/// have Python stacks was allocated by a thread without Python: autograd's, when a forward pass came before.
[[nodiscard]] std::vector<Phase> phases_of_blocks(const Store& store, const std::vector<StackFacts>& stacks);

}  // namespace tidemark
