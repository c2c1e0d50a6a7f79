// Live blocks at a given time as a call tree, outermost caller first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct TreeOptions {
  /// Deeper frames are counted with their ancestor at this depth, however many there are.
  static constexpr std::size_t kMaxDepth = 500;

  Moment at;
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t depth = kMaxDepth;      ///< levels to list, at least 1
  double min_share = 0.01;            ///< leave out nodes below this share of the section
  bool by_count = false;              ///< order and shares by number of blocks instead of bytes
  bool skip_interpreter = false;      ///< leave out native frames above Python code, which only run it
  /// Leave out all frames except Python code of the user's project; their allocations count as their caller's own.
  bool project_only = false;
  BlockFilter filter = {};
  const OwnerGroups* groups = nullptr;  ///< places stacks below their owners; by module: a tree of modules
};

/// Nodes below a node (or the root) that are not listed, because they are too small or too deep.
struct HiddenNodes {
  std::uint64_t count = 0;  ///< of direct callees
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct TreeNode {
  std::uint32_t depth = 0;  ///< 0 = outermost frame
  FrameName frame;
  std::uint64_t bytes = 0;  ///< with callees
  std::uint64_t blocks = 0;
  std::uint64_t own_bytes = 0;  ///< of allocations made in this frame itself
  std::uint64_t own_blocks = 0;
  double share = 0;  ///< of the section: of its allocated bytes, or of its blocks when by_count
  HiddenNodes hidden;
};

struct TreeSection {
  Device device;
  std::optional<std::uint64_t> at_ns;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t unrecorded_bytes = 0;  ///< of these, in no recorded block and so in no node
  std::uint64_t no_stack_bytes = 0;    ///< in recorded blocks without a stack
  std::uint64_t no_stack_blocks = 0;
  std::uint64_t outside_bytes = 0;  ///< in stacks with only frames that TreeOptions::project_only leaves out
  std::uint64_t outside_blocks = 0;
  std::uint64_t blocks = 0;
  std::vector<TreeNode> nodes;  ///< parents before children, siblings largest first
  HiddenNodes hidden;
};

struct Tree {
  RecordingInfo recording;
  bool by_count = false;
  std::vector<TreeSection> sections;
};

/// Fails only when the recording does not contain the requested device.
Result<Tree> analyze_tree(const Store& store, Symbols& symbols, const TreeOptions& options);

}  // namespace tidemark
