#include "monitor/recorded_owners.h"

#include <algorithm>

#include "analyze/common/moment.h"

namespace tidemark {
namespace {

RecordedOwners& of_device(std::vector<RecordedOwners>& owners, const Device& device) {
  const auto found =
      std::find_if(owners.begin(), owners.end(), [&](const RecordedOwners& known) { return known.device == device; });
  if (found != owners.end()) return *found;
  RecordedOwners& added = owners.emplace_back();
  added.device = device;
  return added;
}

template <typename Sums, typename Kind>
void add(Sums& sums, Kind kind, std::uint64_t bytes) {
  auto& sum = sums[static_cast<std::size_t>(kind)];
  if (bytes > 0) sum = sum.value_or(0) + bytes;
}

template <typename Sums>
void clear(Sums& sums) {
  for (auto& sum : sums) {
    if (sum) sum = 0;
  }
}

}  // namespace

void add_up_owners(std::vector<RecordedOwners>& owners, const AttributedStore& store) {
  if (store.attribution == nullptr) return;
  for (RecordedOwners& sums : owners) {  // a device without live blocks may not be in the window
    clear(sums.categories);
    clear(sums.components);
  }
  for (std::size_t device = 0; device < store.devices.size(); ++device) {
    if (is_driver_memory(store.devices[device].device)) continue;
    RecordedOwners& sums = of_device(owners, store.devices[device].device);
    const HeldBlocks held = held_blocks(store, {Moment::Kind::end, 0, 0}, device, {});
    for (const BlockId block : held.blocks) {
      const Owner& owner = store.attribution->blocks[block.value];
      add(sums.categories, owner.category, store.blocks.size[block.value]);
      add(sums.components, owner.component, store.blocks.size[block.value]);
    }
    add(sums.categories, Category::unknown, held.unrecorded_bytes);
    add(sums.components, Component::other, held.unrecorded_bytes);
  }
}

}  // namespace tidemark
