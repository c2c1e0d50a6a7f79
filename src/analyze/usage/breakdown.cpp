#include "analyze/usage/breakdown.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

using CellKey = std::tuple<Category, Phase, Confidence>;

template <typename Row>
void sort_largest_first(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& left, const Row& right) { return left.bytes > right.bytes; });
}

std::vector<CategoryBytes> categories_of(const Store& store, const Attribution& attribution,
                                         const std::vector<BlockId>& live, std::uint64_t allocated) {
  std::map<Category, CategoryBytes> sums;
  auto tensor = attribution.tensors.begin();
  for (const BlockId block : live) {
    const Owner& owner = attribution.blocks[block.value];
    const std::uint64_t size = store.blocks.size[block.value];
    CategoryBytes& sum = sums[owner.category];
    sum.category = owner.category;
    sum.bytes += size;
    ++sum.blocks;
    if (owner.category_confidence != Confidence::exact) continue;
    sum.exact_bytes += size;
    while (tensor != attribution.tensors.end() && tensor->block < block) ++tensor;
    if (tensor == attribution.tensors.end() || tensor->block != block) continue;
    sum.tensor_bytes += std::min(store.definitions.tensors[tensor->tensor].storage_bytes, size);
  }
  std::vector<CategoryBytes> sorted;
  for (auto& [category, sum] : sums) {
    sum.share = share_of(sum.bytes, allocated).value_or(0);
    sorted.push_back(sum);
  }
  sort_largest_first(sorted);
  std::stable_partition(sorted.begin(), sorted.end(),
                        [](const CategoryBytes& sum) { return sum.category != Category::unknown; });
  return sorted;
}

BreakdownGroup group_of(const Store& store, const Attribution& attribution, const std::vector<BlockId>& live,
                        const OwnerGroups& groups, OwnerKind kind, std::uint64_t allocated, std::size_t top) {
  std::map<std::uint32_t, std::map<CellKey, BreakdownCell>> cells;
  for (const BlockId block : live) {
    const Owner& owner = attribution.blocks[block.value];
    const CellKey key{owner.category, owner.phase, owner.category_confidence};
    BreakdownCell& cell = cells[groups.of(block.value)][key];
    std::tie(cell.category, cell.phase, cell.confidence) = key;
    cell.bytes += store.blocks.size[block.value];
    ++cell.blocks;
  }
  BreakdownGroup result;
  result.kind = kind;
  for (const auto& [group, cells_of_group] : cells) {
    BreakdownRow& row = result.rows.emplace_back();
    row.owner = groups.owner(group);
    row.order = group;
    for (const auto& [key, cell] : cells_of_group) {
      row.bytes += cell.bytes;
      row.blocks += cell.blocks;
      row.cells.push_back(cell);
    }
    row.share = share_of(row.bytes, allocated).value_or(0);
  }
  if (kind != OwnerKind::step) sort_largest_first(result.rows);
  for (std::size_t index = top; top != 0 && index < result.rows.size(); ++index) {
    ++result.other_rows;
    result.other_bytes += result.rows[index].bytes;
    result.other_blocks += result.rows[index].blocks;
  }
  if (top != 0 && result.rows.size() > top) result.rows.resize(top);
  return result;
}

// The requested kind, and all others with data.
Result<std::vector<std::pair<OwnerKind, OwnerGroups>>> known_kinds(const Store& store, const Attribution& attribution,
                                                                   std::optional<OwnerKind> by) {
  std::vector<std::pair<OwnerKind, OwnerGroups>> kinds;
  if (by) {
    auto groups = OwnerGroups::create(store, attribution, *by);
    if (!groups) return groups.error();
    kinds.emplace_back(*by, std::move(*groups));
  } else if (auto known = check_known(store, attribution, OwnerKind::category); !known) {
    return known.error();
  }
  for (const OwnerKind kind : {OwnerKind::component, OwnerKind::phase, OwnerKind::module}) {
    if (kind == by) continue;
    auto groups = OwnerGroups::create(store, attribution, kind);
    if (groups) kinds.emplace_back(kind, std::move(*groups));
  }
  return kinds;
}

}  // namespace

std::uint64_t BreakdownRow::bytes_of(Category category) const {
  std::uint64_t sum = 0;
  for (const BreakdownCell& cell : cells) {
    if (cell.category == category) sum += cell.bytes;
  }
  return sum;
}

Result<Breakdown> analyze_breakdown(const Store& store, const Symbols& symbols, const Attribution& attribution,
                                    const BreakdownOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const auto kinds = known_kinds(store, attribution, options.by);
  if (!kinds && !selected->empty()) return kinds.error();
  Breakdown breakdown;
  for (const std::size_t index : *selected) {
    const HeldBlocks held = held_blocks(store, options.at, index, options.filter);
    BreakdownDevice& device = breakdown.devices.emplace_back();
    device.device = store.devices[index].device;
    device.at_ns = held.time_ns;
    device.unrecorded_bytes = held.unrecorded_bytes;
    device.allocated_bytes = held.unrecorded_bytes;
    for (const BlockId block : held.blocks) device.allocated_bytes += store.blocks.size[block.value];
    device.categories = categories_of(store, attribution, held.blocks, device.allocated_bytes);
    for (const auto& [kind, groups] : *kinds) {
      device.groups.push_back(
          group_of(store, attribution, held.blocks, groups, kind, device.allocated_bytes, options.top));
    }
  }
  breakdown.recording = describe_recording(store, symbols);
  return breakdown;
}

std::vector<CategoryBytes> categories_of(const Breakdown& breakdown, Device device) {
  for (const BreakdownDevice& each : breakdown.devices) {
    if (each.device == device) return each.categories;
  }
  return {};
}

std::vector<std::uint64_t> model_peaks(const Store& store, const Attribution& attribution) {
  struct Change {
    std::uint32_t at;  // index into Store::live_changes
    bool is_birth;
    std::uint64_t bytes;
    std::uint8_t device;
  };
  const Blocks& blocks = store.blocks;
  std::vector<Change> changes;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const Category category = attribution.blocks[block].category;
    if (category != Category::parameter && category != Category::gradient && category != Category::optimizer_state) {
      continue;
    }
    changes.push_back({blocks.birth_change[block], true, blocks.size[block], blocks.device[block]});
    if (blocks.death_change[block] == Blocks::kAlive) continue;
    changes.push_back({blocks.death_change[block], false, blocks.size[block], blocks.device[block]});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::vector<std::uint64_t> live(store.devices.size());
  std::vector<std::uint64_t> peaks(store.devices.size());
  for (const Change& change : changes) {
    live[change.device] += change.is_birth ? change.bytes : 0 - change.bytes;
    peaks[change.device] = std::max(peaks[change.device], live[change.device]);
  }
  return peaks;
}

}  // namespace tidemark
