// The forward side of autograd nodes: the block of the operator that a node differentiates. Also the thread of a block:
// autograd's threads count as the thread that ran the forward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// Whether autograd started the thread: it runs only backward passes.
[[nodiscard]] bool is_autograd_thread(const Definitions& definitions, ThreadId thread);

class HomeThreads {
 public:
  explicit HomeThreads(const Store& store);

  /// Adds blocks in order of birth, with their phases. If no autograd node records its forward thread, a thread of
  /// autograd counts as the thread that was in a forward pass last.
  ThreadId add(std::size_t block, Phase phase);

 private:
  const Store& store_;
  std::vector<bool> is_autograd_;    // by ThreadId
  std::vector<ThreadId> works_for_;  // by ThreadId: autograd's threads may also run recomputed forward passes
  ThreadId last_forward_;
};

/// Sequence numbers of nodes are consecutive within a forward thread. A block records the number of the next node. An
/// operator creates its node before it allocates, so the block of node n is the first block with n + 1; for an operator
/// that allocates first, the last block with n; for a view, which allocates nothing, the block of the nearest earlier
/// node.
class ForwardSides {
 public:
  ForwardSides(const Store& store, const PhaseRuns& runs);

  /// The matching block before `block`. Invalid if unknown: nodes that accumulate gradients have no number.
  [[nodiscard]] BlockId of(AutogradNodeId node, std::uint64_t node_sequence, BlockId block) const;
  /// The first block allocated after the node was created.
  [[nodiscard]] BlockId after(AutogradNodeId node, std::uint64_t node_sequence) const;

 private:
  struct Made {
    std::uint64_t sequence = 0;
    BlockId block;
  };

  // Blocks of the thread that created the node; null if unknown.
  [[nodiscard]] const std::vector<Made>* made_beside(AutogradNodeId node, std::uint64_t node_sequence) const;
  static std::vector<Made>::const_iterator first_after(const std::vector<Made>& made, std::uint64_t node_sequence);

  const Store& store_;
  std::vector<std::vector<Made>> made_;  // by ThreadId, in order of birth, and thus by number
};

}  // namespace tidemark
