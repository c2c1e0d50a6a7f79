#include "analyze/common/profile.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

using ProfileKey = std::tuple<StackId, ModulePathId, Phase, Component, Category>;

struct KeyHash {
  std::size_t operator()(const ProfileKey& key) const {
    const auto& [stack, module, phase, component, category] = key;
    const auto of_module = static_cast<std::uint64_t>(module.value) << 24 | static_cast<std::uint64_t>(phase) << 16 |
                           static_cast<std::uint64_t>(component) << 8 | static_cast<std::uint64_t>(category);
    return std::hash<std::uint64_t>()(stack.value + of_module * 0x9E3779B97F4A7C15U);
  }
};

ProfileKey key_of(StackId stack, const Owner& owner) {
  return {stack, owner.module, owner.phase, owner.component, owner.category};
}

ProfileDevice profile_of_device(const Store& store, const ProfileOptions& options, std::size_t device) {
  const ResolvedMoment resolved = resolve_moment(store, options.moment, device);
  ProfileDevice profile;
  profile.device = store.devices[device].device;
  profile.at_ns = resolved.time_ns;
  profile.unrecorded_bytes = options.filter.all() ? resolved.unrecorded_bytes : 0;

  const Blocks& blocks = store.blocks;
  std::unordered_map<ProfileKey, std::size_t, KeyHash> index_of;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device || !options.filter(block)) continue;
    const Owner owner = options.attribution != nullptr ? options.attribution->blocks[block] : Owner{};
    const auto [entry, is_new] = index_of.try_emplace(key_of(blocks.stack[block], owner), profile.stacks.size());
    if (is_new) {
      profile.stacks.emplace_back().stack = blocks.stack[block];
      profile.stacks.back().owner = owner;
    }
    ProfileStack& stack = profile.stacks[entry->second];
    stack.allocated_bytes = saturating_add(stack.allocated_bytes, blocks.size[block]);
    ++stack.allocated_blocks;
    if (!blocks.alive(block, resolved.change_count)) continue;
    stack.held_bytes += blocks.size[block];
    ++stack.held_blocks;
    profile.held_bytes += blocks.size[block];
  }
  std::sort(profile.stacks.begin(), profile.stacks.end(), [](const ProfileStack& left, const ProfileStack& right) {
    return std::tuple(right.held_bytes, right.allocated_bytes, key_of(left.stack, left.owner)) <
           std::tuple(left.held_bytes, left.allocated_bytes, key_of(right.stack, right.owner));
  });
  return profile;
}

}  // namespace

Result<std::vector<ProfileDevice>> analyze_profile(const Store& store, const ProfileOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  std::vector<ProfileDevice> profiles;
  profiles.reserve(selected->size());
  for (const std::size_t device : *selected) profiles.push_back(profile_of_device(store, options, device));
  return profiles;
}

}  // namespace tidemark
