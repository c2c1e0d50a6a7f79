// Stacks below the frames of the blocks' owners.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/groups.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// A tree of stacks of some blocks. Locations beyond those of the definitions are owners.
struct StackTree {
  std::vector<StackNode> nodes;  ///< parents before children
  std::vector<StackId> stacks;   ///< of the blocks, in their order; invalid: none
  std::vector<FrameName> owners;
};

/// The recording's own stacks.
[[nodiscard]] StackTree recorded_stacks(const Store& store, const std::vector<BlockId>& blocks);

/// The stack of each block below a frame that says its owner. By module: the parts of the module's path, and no calls.
[[nodiscard]] StackTree stacks_by_owner(const Store& store, const std::vector<BlockId>& blocks,
                                        const OwnerGroups& groups);

}  // namespace tidemark
