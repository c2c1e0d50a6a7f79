// Stacks put together by the place that they show: what a person calls one place in the program.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/stack_names.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// All stacks that share a place (and a leaf, see NamedStack).
struct Place {
  NamedStack stack;  ///< the one of them that held most
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t stacks = 0;  ///< how many stacks were put together
  double share = 0;          ///< of the whole
};

struct Places {
  std::vector<Place> places;       ///< most bytes first
  std::uint64_t other_places = 0;  ///< beyond the listed ones
  std::uint64_t other_bytes = 0;
};

/// `whole`: the bytes that shares are of; the shares are 0 where it is. `top`: how many places to list; 0 = all.
[[nodiscard]] Places group_by_place(std::vector<StackUsage> usages, Symbols& symbols, std::uint64_t whole,
                                    std::size_t top);

}  // namespace tidemark
