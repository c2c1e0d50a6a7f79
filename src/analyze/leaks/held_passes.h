// Forward passes of a device of which blocks are held for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/phase_runs.h"
#include "store/store.h"

namespace tidemark {

/// What is held of one forward pass. Forward passes with nothing but inputs in between count as one.
struct HeldPass {
  BlockId last;                        ///< the one that was made last
  BlockId graph_end;                   ///< the activation with which the last autograd node was made
  std::uint64_t held_bytes = 0;        ///< of activations
  std::uint64_t activation_bytes = 0;  ///< of all that were made up to `last`, held or not
  std::uint64_t first_sequence = 0;    ///< of the held activations: the autograd node that would be made next
  std::uint64_t last_sequence = 0;
};
using HeldPasses = std::map<std::uint32_t, HeldPass>;  ///< by ForwardPasses::pass_of()

/// The store and the attribution must outlive it.
class ForwardPasses {
 public:
  ForwardPasses(const Store& store, const Attribution& attribution, std::size_t device)
      : store_(store), attribution_(attribution), device_(device), spans_(pass_spans(attribution.phases)) {}

  [[nodiscard]] bool is_activation(BlockId block) const {
    return attribution_.blocks[block.value].category == Category::activation;
  }
  /// Whether nothing but a forward pass that needs it has a use for it: an activation, or an input of the data phase.
  /// Other inputs are what was made outside of all phases and stays: a program may keep them for anything.
  [[nodiscard]] bool is_of_passes(BlockId block) const {
    return is_activation(block) || attribution_.blocks[block.value].phase == Phase::data;
  }
  /// A number, in order of time: of an activation the pass that made it, of an input that one or the next. None for
  /// other blocks.
  [[nodiscard]] std::optional<std::uint32_t> pass_of(BlockId block) const;

  /// Adds a block that is held.
  void add_held(BlockId block, HeldPasses& passes) const;
  /// After all that are held: sets HeldPass::activation_bytes.
  void add_activations(HeldPasses& passes) const;

  /// Whether what is held are autograd graphs, in most of the passes. What a program keeps on purpose (outputs, hidden
  /// states) is less than half of the activations, or no autograd node was made. Where the recording has no numbers of
  /// nodes, a backward pass that comes next tells that there was a graph.
  [[nodiscard]] bool are_graphs(const HeldPasses& passes) const;
  /// Of the block that most of them end in: in graphs the tensor that autograd made last, where the recording has
  /// numbers of nodes, else what was made last. A pass that no backward pass follows goes on into the next input.
  [[nodiscard]] StackId usual_last(const HeldPasses& passes, bool are_graphs) const;

 private:
  const Store& store_;
  const Attribution& attribution_;
  std::size_t device_;
  std::vector<PhaseSpan> spans_;
};

}  // namespace tidemark
