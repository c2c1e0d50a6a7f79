// Calls of models in a forward pass: their allocations, and how long the model's own code needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyze/advice/rules.h"

namespace tidemark::advice {

/// Consecutive calls of outermost modules, with the memory that they allocated and kept for longer than their own code
/// needed.
struct ModelCall {
  std::vector<BlockId> blocks;    ///< blocks of its modules, in order of birth
  std::vector<EarlierFree> held;  ///< absent once no module's call uses them any more; excludes the last block, its
                                  ///< result
  std::uint64_t end = 0;          ///< index into Store::live_changes

  [[nodiscard]] std::uint64_t from(const Subject& subject) const {
    return subject.store.blocks.birth_change[blocks.front().value];
  }
};

/// The calls that make autograd nodes, in order of time.
[[nodiscard]] std::vector<ModelCall> calls_with_graph(const Subject& subject);

/// The backward pass that is under way, as an index into Subject::spans.
[[nodiscard]] std::optional<std::size_t> backward_at(const Subject& subject, std::uint64_t change);

/// The backward pass that frees some of a call's blocks.
[[nodiscard]] std::optional<std::size_t> backward_of(const Subject& subject, const ModelCall& call);

/// Calls by the backward pass that goes through them.
[[nodiscard]] std::map<std::size_t, std::vector<ModelCall>> calls_by_backward(const Subject& subject);

/// The modules with a call in this stack, outermost first.
[[nodiscard]] std::vector<NnModuleId> modules_in(const Definitions& definitions, StackId stack);

}  // namespace tidemark::advice
