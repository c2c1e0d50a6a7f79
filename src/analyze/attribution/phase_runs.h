// The phase of each block, and the phases in order of time: which blocks belong to the same pass, when the pass was
// over, and the phases of the program over time.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/stack_facts.h"
#include "store/store.h"

namespace tidemark {

/// A forward pass, a backward pass with its recomputation, a step of the optimizer, or the time between them.
struct Pass {
  static constexpr std::uint32_t kNone = Blocks::kAlive;

  Phase phase = Phase::other;
  std::uint32_t end_change = kNone;  ///< index into Store::live_changes: birth of the first block of the next pass
  std::uint32_t next = kNone;        ///< next pass of the same thread, index into PhaseRuns::passes
};

/// Consecutive blocks of one phase; a pass has several runs if it recomputes, or works between the calls of its
/// modules.
struct PhaseRun {
  Phase phase = Phase::other;
  std::uint32_t end_change = Pass::kNone;
  std::uint32_t pass = 0;  ///< index into PhaseRuns::passes
};

struct PhaseRuns {
  std::vector<Pass> passes;
  std::vector<PhaseRun> runs;
  std::vector<std::uint32_t> of_block;  ///< index into `runs`, by BlockId
  std::vector<bool> made_nodes;         ///< by BlockId: its thread created autograd nodes since the thread's previous
                                        ///< block

  [[nodiscard]] const PhaseRun& run(std::size_t block) const { return runs[of_block[block]]; }
  [[nodiscard]] const Pass& pass(std::size_t block) const { return passes[run(block).pass]; }
};

/// `phases`: by BlockId, from stacks and autograd nodes. The runs add: code between and after the calls of modules
/// belongs to the forward pass if a backward pass follows and autograd nodes were created (losses written by hand).
/// Blocks of autograd's threads belong to the thread that ran the forward pass.
[[nodiscard]] PhaseRuns find_phase_runs(const Store& store, const std::vector<Phase>& phases);

/// The runs of all threads and devices in order of time; adjacent runs of one phase are joined. A thread that loads
/// data, or works outside of all phases, does not end a pass of another thread.
[[nodiscard]] std::vector<PhaseSpan> phase_spans(const Store& store, const PhaseRuns& runs);

/// Only forward passes, backward passes with their recomputation, and steps of the optimizer; the time between two
/// belongs to the earlier one. Nothing before the first.
[[nodiscard]] std::vector<PhaseSpan> pass_spans(const std::vector<PhaseSpan>& spans);

[[nodiscard]] Phase phase_of(const Definitions& definitions, const StackFacts& stack, AutogradNodeId node,
                             ThreadId thread);

/// By BlockId. If neither node nor thread is known (PyTorch's snapshots), a block without a stack between blocks with
/// Python stacks was allocated by a thread without Python: autograd's, if a forward pass came before.
[[nodiscard]] std::vector<Phase> phases_of_blocks(const Store& store, const std::vector<StackFacts>& stacks);

}  // namespace tidemark
