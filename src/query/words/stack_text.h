// Stacks as one line of printable text.
#pragma once

#include <cstddef>
#include <string>

#include "analyze/common/stack_names.h"

namespace tidemark {

/// Columns that a stack has within a sentence.
inline constexpr std::size_t kStackInSentence = 72;

/// The place and what it called: "main (train.py:42) → AdamW.step (torch/optim/adamw.py)", or "(no stack)". With the
/// module whose call it is: "… → Linear.forward in model.layers.3.mlp". What the backward pass allocated is "backward
/// of model.layers.3.mlp.down_proj (modeling_llama.py:175)", what FSDP gathers "all-gather of model.layers.3". With
/// NamedStack::apart, where that is set. An owner in its place is owner_text(). At most `width` columns (0 =
/// unlimited): paths get shorter first, the place's function and line stay longest.
[[nodiscard]] std::string stack_text(const NamedStack& stack, std::size_t width = 0);

/// The same without a caller that tells it apart, for where all callers follow.
[[nodiscard]] std::string place_text(const NamedStack& stack);

/// The callers of that place that are the project's too: " ← step (train.py:40) ← main (train.py:80)". Where it is not
/// in the project, all but PyTorch's and the interpreter's.
[[nodiscard]] std::string callers_text(const NamedStack& stack);

/// Both. Of the callers as many as fit, the nearest first.
[[nodiscard]] std::string stack_text_with_callers(const NamedStack& stack, std::size_t width = 0);

}  // namespace tidemark
