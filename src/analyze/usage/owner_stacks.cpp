#include "analyze/usage/owner_stacks.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace tidemark {
namespace {

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

}  // namespace

StackTree recorded_stacks(const Store& store, const std::vector<BlockId>& blocks) {
  StackTree tree{store.definitions.stacks, {}, {}};
  tree.stacks.reserve(blocks.size());
  for (const BlockId block : blocks) tree.stacks.push_back(store.blocks.stack[block.value]);
  return tree;
}

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

}  // namespace tidemark
