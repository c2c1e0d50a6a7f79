// The purpose of a block, derived from the time and code of its allocation, and the time of its free.
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

/// Categories of blocks that are not known to hold a tensor of the model. Category::unknown if neither stack nor
/// lifetime decides.
///
/// - Made in a forward or recomputed pass: an activation if alive when the pass is over, otherwise temporary.
/// - Made in a backward pass: a gradient if alive when the pass is over, otherwise temporary.
/// - Made by the optimizer: its state if alive when the step is over, otherwise temporary.
/// - Made for a batch: input. Outside all of these: input if alive when a forward pass begins, an activation if
///   freed in a backward pass, temporary if freed in any other.
/// - Made between the calls of a forward pass, without an autograd node, by a stack that makes inputs outside: input.
///   A loop makes its next batch before the backward pass.
///
/// Blocks alive when memory runs out in the middle of a pass, or when the recording ends there, have the category of
/// earlier blocks: of the same stack or, in a backward pass, of the same size. The exception frees all of them, so
/// their frees are no evidence.
class Lifetimes {
 public:
  Lifetimes(const Store& store, const PhaseRuns& runs, const std::vector<TensorInBlock>& tensors);

  [[nodiscard]] Category category(std::size_t block, AllocationOrigin making) const;
  /// Category of blocks that were never freed, or never allocated: a failed request.
  [[nodiscard]] Category usual_category(Phase phase, StackId stack, std::uint64_t size) const;

 private:
  [[nodiscard]] bool dies_before(std::size_t block, std::uint32_t change) const {
    const std::uint32_t death = store_.blocks.death_change[block];
    return death != Blocks::kAlive && death <= change;
  }
  // Otherwise its lifetime is unknown.
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
  std::vector<std::vector<std::uint64_t>> failures_;  // by device: numbers of changes up to each failure, in order
  std::vector<bool> usually_temporary_;               // by StackId
  std::vector<bool> makes_inputs_;                    // by StackId: makes inputs outside of all phases
  std::unordered_set<std::uint64_t> gradient_sizes_;  // bytes
};

/// In order of birth. Workspaces are blocks of the size that PyTorch gives them (at::cuda::getChosenWorkspaceSize),
/// which are alive after their pass and the next one ended, and are the only such block of their thread. cuBLASLt's
/// workspace is also identified by nn.Linear, which calls it.
[[nodiscard]] std::vector<BlockId> find_workspaces(const Store& store, const PhaseRuns& runs);

}  // namespace tidemark
