// The forward side of autograd nodes: which block the operator allocated whose backward pass a node is, and which
// thread a block belongs to: autograd's threads work for the one whose forward pass they go back through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// Whether autograd started the thread: it runs nothing but backward passes.
[[nodiscard]] bool is_autograd_thread(const Definitions& definitions, ThreadId thread);

class HomeThreads {
 public:
  explicit HomeThreads(const Store& store);

  /// Blocks are added in order of birth, with their phases. Without an autograd node that knows its forward thread, a
  /// thread of autograd's works for the one that was in a forward pass last.
  ThreadId add(std::size_t block, Phase phase);

 private:
  const Store& store_;
  std::vector<bool> is_autograd_;    // by ThreadId
  std::vector<ThreadId> works_for_;  // by ThreadId: a recomputed forward pass is made by a thread of autograd's
  ThreadId last_forward_;
};

/// A node's number among those of its forward thread is the one after the number of the node before. A block notes the
/// number of the next node. An operator makes its node before it allocates, so what node n stands for is the first
/// block with n + 1; of an operator that allocates first, the last one with n; and of a view, which allocates nothing,
/// that of the nearest earlier one.
class ForwardSides {
 public:
  ForwardSides(const Store& store, const PhaseRuns& runs);

  /// Of those before `block`. Invalid where it is not known: nodes that accumulate gradients have no number.
  [[nodiscard]] BlockId of(AutogradNodeId node, std::uint64_t node_sequence, BlockId block) const;
  /// What was allocated first after the node was made.
  [[nodiscard]] BlockId after(AutogradNodeId node, std::uint64_t node_sequence) const;

 private:
  struct Made {
    std::uint64_t sequence = 0;
    BlockId block;
  };

  // Of the thread that made the node; null where that is not known.
  [[nodiscard]] const std::vector<Made>* made_beside(AutogradNodeId node, std::uint64_t node_sequence) const;
  static std::vector<Made>::const_iterator first_after(const std::vector<Made>& made, std::uint64_t node_sequence);

  const Store& store_;
  std::vector<std::vector<Made>> made_;  // by ThreadId, in order of birth, which is that of numbers
};

}  // namespace tidemark
