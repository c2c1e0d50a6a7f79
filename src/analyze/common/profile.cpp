#include "analyze/common/profile.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "analyze/common/arithmetic.h"
#include "analyze/common/devices.h"

namespace tidemark {
namespace {

ProfileDevice profile_of_device(const Store& store, const Moment& moment, std::size_t device) {
  const ResolvedMoment resolved = resolve_moment(store, moment, device);
  ProfileDevice profile;
  profile.device = store.devices[device].device;
  profile.at_ns = resolved.time_ns;
  profile.unrecorded_bytes = resolved.unrecorded_bytes;

  const Blocks& blocks = store.blocks;
  std::unordered_map<StackId, std::size_t> index_of;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device) continue;
    const auto [entry, is_new] = index_of.try_emplace(blocks.stack[block], profile.stacks.size());
    if (is_new) profile.stacks.emplace_back().stack = blocks.stack[block];
    ProfileStack& stack = profile.stacks[entry->second];
    stack.allocated_bytes = saturating_add(stack.allocated_bytes, blocks.size[block]);
    ++stack.allocated_blocks;
    if (!blocks.alive(block, resolved.change_count)) continue;
    stack.held_bytes += blocks.size[block];
    ++stack.held_blocks;
    profile.held_bytes += blocks.size[block];
  }
  std::sort(profile.stacks.begin(), profile.stacks.end(), [](const ProfileStack& left, const ProfileStack& right) {
    return std::tuple(right.held_bytes, right.allocated_bytes, left.stack) <
           std::tuple(left.held_bytes, left.allocated_bytes, right.stack);
  });
  return profile;
}

}  // namespace

Result<std::vector<ProfileDevice>> analyze_profile(const Store& store, const ProfileOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  std::vector<ProfileDevice> profiles;
  profiles.reserve(selected->size());
  for (const std::size_t device : *selected) profiles.push_back(profile_of_device(store, options.moment, device));
  return profiles;
}

}  // namespace tidemark
