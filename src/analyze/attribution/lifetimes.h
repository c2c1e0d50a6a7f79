// What a block is for, told by when it was made, by what, and when it was freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/model_tensors.h"
#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// Of blocks that no tensor of the model is known to be in. Category::unknown where neither tells.
///
/// - Made in a forward pass: an activation if it is alive when the pass is over, otherwise temporary. Likewise in a
///   recomputed one.
/// - Made in a backward pass: a gradient if it is alive when the pass is over, otherwise temporary.
/// - Made by the optimizer: its state if it is alive when the step is over, otherwise temporary.
/// - Made for a batch: input. Outside all of these: input if it is there when a forward pass begins, an activation if
/// it
///   is freed in a backward pass, temporary if it is freed in any other.
/// - Made between the calls of a forward pass, without an autograd node, by a stack that makes inputs outside: input.
///   A loop makes its next batch before the backward pass.
///
/// What is alive where memory runs out in the middle of a pass, or a recording ends there, counts as it did before: by
/// its stack, in a backward pass by its size. The exception frees it all, which says nothing.
class Lifetimes {
 public:
  Lifetimes(const Store& store, const PhaseRuns& runs, const std::vector<TensorInBlock>& tensors);

  [[nodiscard]] Category category(std::size_t block, AllocationOrigin making) const;
  /// Of what was never freed, or never allocated: a request that failed.
  [[nodiscard]] Category usual_category(Phase phase, StackId stack, std::uint64_t size) const;

 private:
  [[nodiscard]] bool dies_before(std::size_t block, std::uint32_t change) const {
    const std::uint32_t death = store_.blocks.death_change[block];
    return death != Blocks::kAlive && death <= change;
  }
  // Otherwise nothing says how long it would have lived.
  [[nodiscard]] bool is_decided(std::size_t block) const {
    if (is_freed_by_failure(block)) return false;
    return store_.blocks.death_change[block] != Blocks::kAlive || runs_.pass(block).end_change != Pass::kNone;
  }
  /// Whether a request failed between the block's birth and death, in the pass that it was made in.
  [[nodiscard]] bool is_freed_by_failure(std::size_t block) const;
  void read_ended_passes();
  void find_inputs();
  [[nodiscard]] bool is_input_again(std::size_t block) const;
  [[nodiscard]] Category outside_phases(std::size_t block) const;

  const Store& store_;
  const PhaseRuns& runs_;
  bool knows_parameters_;
  std::vector<std::vector<std::uint64_t>> failures_;  // by device: how many changes there were, in order
  std::vector<bool> usually_temporary_;               // by StackId
  std::vector<bool> makes_inputs_;                    // by StackId: outside of all phases
  std::unordered_set<std::uint64_t> gradient_sizes_;  // bytes
};

/// In order of birth. A block counts that is as big as PyTorch makes them (at::cuda::getChosenWorkspaceSize), is not
/// freed after its pass and the next were over, and is the only such one of its thread. cuBLASLt's is known by
/// nn.Linear besides, which calls it.
[[nodiscard]] std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs);

}  // namespace tidemark
