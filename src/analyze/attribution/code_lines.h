// Lines of the program that make memory of the training step outside of all modules, such as a loss.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "store/store.h"

namespace tidemark {

struct CodeLines {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::string> names;  ///< "(train.py:24)", or with what the line calls: "(train.py:24: cross_entropy)"
  std::vector<std::uint32_t> of_block;  ///< by BlockId; kNone: has a module, is of no pass, or no line is known
};

/// Of blocks of forward and backward passes that have no module: the innermost line of the program in their stack, or
/// in that of their forward side.
[[nodiscard]] CodeLines code_lines_of_blocks(const Store& store, const Attribution& attribution);

}  // namespace tidemark
