// One rule for each kind of advice: which blocks would be freed, and when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/common/earlier_frees.h"
#include "analyze/steps/training_steps.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark::advice {

/// Input of the rules: one device of a recording.
struct Subject {
  const Store& store;
  Symbols& symbols;
  const Attribution& attribution;
  std::size_t device;
  const TrainingSteps& steps;
  std::vector<PhaseSpan> spans;  ///< passes
  std::vector<BlockId> blocks;   ///< of the device, in order of birth

  [[nodiscard]] const Owner& owner(BlockId block) const { return attribution.blocks[block.value]; }
  /// How many passes began up to this change: the last of them is the one that it is in.
  [[nodiscard]] std::size_t spans_until(std::uint64_t change) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(spans, change, {}, &PhaseSpan::from) - spans.begin());
  }
  /// In `blocks`, the first one born at this change or later.
  [[nodiscard]] std::vector<BlockId>::const_iterator made_since(std::uint64_t change) const {
    return std::ranges::lower_bound(
        blocks, change, {}, [this](BlockId block) { return std::uint64_t{store.blocks.birth_change[block.value]}; });
  }
  /// Whether the block is a copy of a model's tensors that this origin allocated.
  [[nodiscard]] bool is_copy(BlockId block, AllocationOrigin made_by) const {
    return owner(block).category == Category::copy && owner(block).making == made_by;
  }
};

/// The blocks that would be freed; empty if the program does not have this fault.
using Rule = std::vector<EarlierFree> (*)(const Subject& subject);

std::vector<EarlierFree> checkpoint_activations(const Subject& subject);
std::vector<EarlierFree> gradients_in_forward(const Subject& subject);
std::vector<EarlierFree> frozen_gradients(const Subject& subject);
std::vector<EarlierFree> frozen_optimizer_state(const Subject& subject);
std::vector<EarlierFree> large_optimizer_state(const Subject& subject);
std::vector<EarlierFree> attention_matrices(const Subject& subject);
std::vector<EarlierFree> logits(const Subject& subject);
std::vector<EarlierFree> logits_upcast(const Subject& subject);
std::vector<EarlierFree> gradient_buckets(const Subject& subject);
std::vector<EarlierFree> gathered_parameters(const Subject& subject);
std::vector<EarlierFree> checkpoint_copies(const Subject& subject);
std::vector<EarlierFree> loaded_checkpoint(const Subject& subject);
std::vector<EarlierFree> model_copies(const Subject& subject);
std::vector<EarlierFree> retained_graph(const Subject& subject);
std::vector<EarlierFree> inference_with_autograd(const Subject& subject);
std::vector<EarlierFree> unused_gradients(const Subject& subject);
std::vector<EarlierFree> forwards_before_backward(const Subject& subject);
std::vector<EarlierFree> checkpoint_each_layer(const Subject& subject);
std::vector<EarlierFree> optimizer_temporaries(const Subject& subject);
std::vector<EarlierFree> kept_over_steps(const Subject& subject);
std::vector<EarlierFree> failed_call(const Subject& subject);
std::vector<EarlierFree> repeated_concatenation(const Subject& subject);
std::vector<EarlierFree> collected_results(const Subject& subject);
std::vector<EarlierFree> held_results(const Subject& subject);

/// The repeated layer that contains a module: its path up to the outermost number, "model.layers.3". Empty if there is
/// none.
[[nodiscard]] std::string layer_of(const std::string& path);

/// Whether a part of a module's path is a number: its place in a ModuleList or Sequential.
[[nodiscard]] bool is_place(std::string_view part);

}  // namespace tidemark::advice
