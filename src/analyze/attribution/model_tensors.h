// The blocks that hold tensors of the model and its optimizer, found by the tensors' addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "store/store.h"

namespace tidemark {

/// A block that held a tensor when the program reported its tensors.
struct TensorInBlock {
  BlockId block;
  std::uint32_t tensor = 0;         ///< index into Definitions::tensors
  std::vector<NnModuleId> modules;  ///< of all tensors of its kind that the block held then: of a flat buffer several
};

/// In order of blocks, one for each block that held any: a parameter is preferred to a buffer, an optimizer state and a
/// gradient; among several of a kind, the one reported first.
[[nodiscard]] std::vector<TensorInBlock> find_model_tensors(const Store& store);

}  // namespace tidemark
