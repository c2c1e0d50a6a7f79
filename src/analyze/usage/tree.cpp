#include "analyze/usage/tree.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/attribution/groups.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "base/arithmetic.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

namespace {

/// A tree of stacks of some blocks. Locations beyond those of the definitions are owners.
struct StackTree {
  std::vector<StackNode> nodes;  ///< parents before children
  std::vector<StackId> stacks;   ///< stacks of the blocks, in their order; invalid: none
  std::vector<FrameName> owners;
};

class TreeGrower {
 public:
  TreeGrower(const Definitions& definitions, const OwnerGroups& groups) : definitions_(definitions), groups_(groups) {}

  StackId of(std::uint32_t group, StackId stack) {
    const BlockOwner owner = groups_.owner(group);
    const bool modules = owner.kind == OwnerKind::module;
    const auto [entry, is_new] = grown_.try_emplace({group, modules ? StackId{} : stack}, StackId{});
    if (is_new) entry->second = modules ? grow_module(owner) : grow(below_owner({}, owner.name), stack);
    return entry->second;
  }
  StackTree take() && { return std::move(tree_); }

 private:
  StackId push(StackId parent, LocationId location) {
    const auto [entry, is_new] = nodes_.try_emplace({parent, location}, StackId{});
    if (is_new) {
      entry->second = StackId{static_cast<std::uint32_t>(tree_.nodes.size())};
      tree_.nodes.push_back({parent, location});
    }
    return entry->second;
  }
  StackId below_owner(StackId parent, const std::optional<std::string>& name) {
    const auto [entry, is_new] = owners_.try_emplace(name.value_or("(none)"), LocationId{});
    if (is_new) {
      entry->second = LocationId{static_cast<std::uint32_t>(definitions_.locations.size() + tree_.owners.size())};
      FrameName& owner = tree_.owners.emplace_back();
      owner.function = entry->first;
      owner.is_module = true;
    }
    return push(parent, entry->second);
  }
  StackId grow_module(const BlockOwner& owner) {
    if (!owner.name || owner.name->starts_with('(')) return below_owner({}, owner.name);  // a line of the program
    StackId stack;
    for (std::size_t begin = 0; begin <= owner.name->size();) {
      const std::size_t end = std::min(owner.name->find('.', begin), owner.name->size());
      stack = below_owner(stack, owner.name->substr(begin, end - begin));
      begin = end + 1;
    }
    return stack;
  }
  StackId grow(StackId below, StackId stack) {
    for (const LocationId frame : frames_of(definitions_, stack)) below = push(below, frame);
    return below;
  }

  const Definitions& definitions_;
  const OwnerGroups& groups_;
  StackTree tree_;
  std::map<std::pair<std::uint32_t, StackId>, StackId> grown_;
  std::map<std::pair<StackId, LocationId>, StackId> nodes_;
  std::map<std::string, LocationId> owners_;
};

// The recording's own stacks.
StackTree recorded_stacks(const Store& store, const std::vector<BlockId>& blocks) {
  StackTree tree{store.definitions.stacks, {}, {}};
  tree.stacks.reserve(blocks.size());
  for (const BlockId block : blocks) tree.stacks.push_back(store.blocks.stack[block.value]);
  return tree;
}

// The stack of each block below a frame that names its owner. By module: the parts of the module's path, and no calls.
StackTree stacks_by_owner(const Store& store, const std::vector<BlockId>& blocks, const OwnerGroups& groups) {
  TreeGrower grower(store.definitions, groups);
  std::vector<StackId> stacks;
  stacks.reserve(blocks.size());
  for (const BlockId block : blocks) {
    stacks.push_back(grower.of(groups.of(block.value), store.blocks.stack[block.value]));
  }
  StackTree tree = std::move(grower).take();
  tree.stacks = std::move(stacks);
  return tree;
}

struct Weight {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;

  Weight& operator+=(const Weight& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    return *this;
  }
};

// The recording's tree of stacks with the memory of each node. Parents have smaller ids than their children, so one
// pass backwards computes the sums.
class WeightedStacks {
 public:
  WeightedStacks(const Store& store, const std::vector<BlockId>& live, StackTree tree)
      : owners_(std::move(tree.owners)),
        first_owner_(store.definitions.locations.size()),
        nodes_(std::move(tree.nodes)),
        own_(nodes_.size()),
        total_(nodes_.size()),
        children_(nodes_.size()),
        runs_python_(nodes_.size()) {
    for (std::size_t index = 0; index < live.size(); ++index) {
      const Weight weight = {store.blocks.size[live[index].value], 1};
      const StackId stack = tree.stacks[index];
      (stack.value < own_.size() ? own_[stack.value] : no_stack) += weight;
      all += weight;
    }
    for (std::size_t index = nodes_.size(); index-- > 0;) {
      if (const StackId parent = nodes_[index].parent; parent.value < index) {
        const LocationId location = nodes_[index].location;
        const bool python = location.value < store.definitions.locations.size() &&
                            store.definitions.locations[location.value].kind == Location::Kind::python;
        if (python || runs_python_[index]) runs_python_[parent.value] = true;
      }
      total_[index] += own_[index];
      if (total_[index].blocks == 0) continue;
      const StackId parent = nodes_[index].parent;
      const auto id = static_cast<std::uint32_t>(index);
      if (parent.value < index) {
        total_[parent.value] += total_[index];
        children_[parent.value].push_back(id);
      } else {
        roots.push_back(id);
      }
    }
  }

  [[nodiscard]] Weight own(std::uint32_t node) const { return own_[node]; }
  [[nodiscard]] Weight total(std::uint32_t node) const { return total_[node]; }
  [[nodiscard]] const std::vector<std::uint32_t>& children(std::uint32_t node) const { return children_[node]; }
  /// Whether Python code is somewhere below the node.
  [[nodiscard]] bool runs_python(std::uint32_t node) const { return runs_python_[node]; }
  [[nodiscard]] const FrameName& name(std::uint32_t node, Symbols& symbols) const {
    const LocationId location = nodes_[node].location;
    const std::size_t owner = location.value - first_owner_;
    return location.value >= first_owner_ && owner < owners_.size() ? owners_[owner] : symbols.name(location);
  }

  std::vector<std::uint32_t> roots;
  Weight no_stack;
  Weight all;

 private:
  std::vector<FrameName> owners_;
  std::size_t first_owner_;
  std::vector<StackNode> nodes_;
  std::vector<Weight> own_;
  std::vector<Weight> total_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<bool> runs_python_;
};

// Sibling nodes that are displayed alike: different addresses in one native function, for instance.
struct NodeGroup {
  std::vector<std::uint32_t> nodes;
  Weight total;
  std::uint32_t depth = 0;
};

class TreeBuilder {
 public:
  TreeBuilder(const WeightedStacks& stacks, Symbols& symbols, const TreeOptions& options, TreeSection& section)
      : stacks_(stacks), symbols_(symbols), options_(options), section_(section) {}

  void build() {
    std::vector<std::uint32_t> roots = stacks_.roots;
    const Weight outside = leave_out(roots);
    section_.outside_bytes = outside.bytes;
    section_.outside_blocks = outside.blocks;
    push(roots, 0, section_.hidden);
    while (!pending_.empty()) {
      const NodeGroup group = std::move(pending_.back());
      pending_.pop_back();
      add(group);
    }
  }

 private:
  void add(const NodeGroup& group) {
    TreeNode node;
    node.depth = group.depth;
    node.frame = stacks_.name(group.nodes.front(), symbols_);
    node.bytes = group.total.bytes;
    node.blocks = group.total.blocks;
    node.share = share(group.total);
    std::vector<std::uint32_t> below;
    Weight own;
    for (const std::uint32_t member : group.nodes) {
      own += stacks_.own(member);
      const std::vector<std::uint32_t>& children = stacks_.children(member);
      below.insert(below.end(), children.begin(), children.end());
    }
    own += leave_out(below);
    node.own_bytes = own.bytes;
    node.own_blocks = own.blocks;
    push(below, group.depth + 1, node.hidden);
    section_.nodes.push_back(std::move(node));
  }

  // Frames of the interpreter that allocate themselves stay.
  [[nodiscard]] bool is_left_out(std::uint32_t node) {
    if (!options_.skip_interpreter && !options_.project_only) return false;
    const FrameName& frame = stacks_.name(node, symbols_);
    if (options_.project_only) return !is_project_code(frame);
    return frame.kind != Location::Kind::python && stacks_.runs_python(node) && stacks_.own(node).blocks == 0;
  }

  // Replaces omitted frames by their children; returns the allocations of the omitted frames themselves.
  Weight leave_out(std::vector<std::uint32_t>& nodes) {
    Weight own;
    std::vector<std::uint32_t> kept;
    while (!nodes.empty()) {
      const std::uint32_t node = nodes.back();
      nodes.pop_back();
      if (!is_left_out(node)) {
        kept.push_back(node);
        continue;
      }
      own += stacks_.own(node);
      const std::vector<std::uint32_t>& below = stacks_.children(node);
      nodes.insert(nodes.end(), below.begin(), below.end());
    }
    nodes = std::move(kept);
    return own;
  }

  // Groups `nodes` and pushes the nodes to list onto the stack of pending ones, largest on top.
  void push(const std::vector<std::uint32_t>& nodes, std::uint32_t depth, HiddenNodes& hidden) {
    std::map<std::tuple<Location::Kind, std::string, std::string, std::uint32_t, CompiledGraph>, NodeGroup> groups;
    for (const std::uint32_t node : nodes) {
      const FrameName& name = stacks_.name(node, symbols_);
      NodeGroup& group = groups[{name.kind, name.function, name.file, name.line, name.graph}];
      group.nodes.push_back(node);
      group.total += stacks_.total(node);
      group.depth = depth;
    }
    const auto first = static_cast<std::ptrdiff_t>(pending_.size());
    for (auto& [key, group] : groups) {
      if (depth < std::min(options_.depth, TreeOptions::kMaxDepth) && share(group.total) >= options_.min_share) {
        pending_.push_back(std::move(group));
      } else {
        ++hidden.count;
        hidden.bytes += group.total.bytes;
        hidden.blocks += group.total.blocks;
      }
    }
    // Reverses equal ones first, so that the reversal keeps them in order of their names.
    std::reverse(pending_.begin() + first, pending_.end());
    std::stable_sort(pending_.begin() + first, pending_.end(), [this](const NodeGroup& left, const NodeGroup& right) {
      return options_.by_count ? left.total.blocks < right.total.blocks : left.total.bytes < right.total.bytes;
    });
  }

  [[nodiscard]] double share(const Weight& weight) const {
    const std::uint64_t part = options_.by_count ? weight.blocks : weight.bytes;
    const std::uint64_t whole = options_.by_count ? section_.blocks : section_.allocated_bytes;
    return share_of(part, whole).value_or(0);
  }

  const WeightedStacks& stacks_;
  Symbols& symbols_;
  const TreeOptions& options_;
  TreeSection& section_;
  std::vector<NodeGroup> pending_;
};

}  // namespace

Result<Tree> analyze_tree(const Store& store, Symbols& symbols, const TreeOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  Tree tree;
  tree.by_count = options.by_count;
  for (const std::size_t device : *selected) {
    const HeldBlocks held = held_blocks(store, options.at, device, options.filter);
    const WeightedStacks stacks(store, held.blocks,
                                options.groups != nullptr ? stacks_by_owner(store, held.blocks, *options.groups)
                                                          : recorded_stacks(store, held.blocks));
    TreeSection& section = tree.sections.emplace_back();
    section.device = store.devices[device].device;
    section.at_ns = held.time_ns;
    section.unrecorded_bytes = held.unrecorded_bytes;
    section.allocated_bytes = stacks.all.bytes + held.unrecorded_bytes;
    section.no_stack_bytes = stacks.no_stack.bytes;
    section.no_stack_blocks = stacks.no_stack.blocks;
    section.blocks = stacks.all.blocks;
    TreeBuilder(stacks, symbols, options, section).build();
  }
  tree.recording = describe_recording(store, symbols);
  return tree;
}

}  // namespace tidemark
