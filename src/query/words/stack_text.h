// Stacks as one line of printable text.
#pragma once

#include <cstddef>
#include <string>

#include "analyze/common/stack_names.h"

namespace tidemark {

/// Columns that a stack has within a sentence.
inline constexpr std::size_t kStackInSentence = 72;

/// The place and its callees: "main (train.py:42) → AdamW.step (torch/optim/adamw.py)", or "(no stack)". With the
/// called module: "… → Linear.forward in model.layers.3.mlp". Allocations of the backward pass are "backward of
/// model.layers.3.mlp.down_proj (modeling_llama.py:175)", parameters gathered by FSDP "all-gather of model.layers.3".
/// With NamedStack::apart, if set. For an owner, owner_text(). At most `width` columns (0 = unlimited): paths are
/// shortened first, the place's function and line last.
[[nodiscard]] std::string stack_text(const NamedStack& stack, std::size_t width = 0);

/// The same without the distinguishing caller, if all callers follow.
[[nodiscard]] std::string place_text(const NamedStack& stack);

/// The callers of that place in the project: " ← step (train.py:40) ← main (train.py:80)". If the place is not in the
/// project, all except PyTorch's and the interpreter's.
[[nodiscard]] std::string callers_text(const NamedStack& stack);

/// Both. Of the callers as many as fit, the nearest first.
[[nodiscard]] std::string stack_text_with_callers(const NamedStack& stack, std::size_t width = 0);

}  // namespace tidemark
