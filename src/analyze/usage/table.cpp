#include "analyze/usage/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyze/common/annotations.h"
#include "analyze/common/recording_info.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

struct RowSum {
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

// For each stack a number that it shares with the stacks that differ from it in the called modules alone: identical
// layers of a model.
std::vector<std::uint32_t> numbers_without_modules(const Definitions& definitions) {
  std::map<std::tuple<Location::Kind, StringId, StringId, std::uint32_t, ModuleId, std::uint64_t, bool>, std::uint32_t>
      known_locations;
  std::vector<std::uint32_t> locations;
  for (const Location& location : definitions.locations) {
    const bool calls_module = location.nn_module.valid();
    const StringId function = calls_module ? StringId() : location.function;  // the module's path
    locations.push_back(known_locations
                            .try_emplace({location.kind, location.file, function, location.line, location.module,
                                          location.offset, calls_module},
                                         static_cast<std::uint32_t>(known_locations.size()))
                            .first->second);
  }
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // by the parent's number and the location's
  std::vector<std::uint32_t> stacks;
  for (const StackNode& node : definitions.stacks) {
    const bool has_parent = node.parent.valid() && node.parent.value < stacks.size();
    const bool has_location = node.location.valid() && node.location.value < locations.size();
    const std::uint64_t parent = has_parent ? stacks[node.parent.value] + std::uint64_t{1} : 0;
    const std::uint64_t location = has_location ? locations[node.location.value] + std::uint64_t{1} : 0;
    stacks.push_back(
        known.try_emplace(parent << 32U | location, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return stacks;
}

/// Rows of one section: what they hold, and the stacks of a row by stack, the one with most bytes first.
struct RowGroup {
  RowSum sum;
  std::vector<StackId> stacks;
};

// Puts identical layers into one row. `numbers`: numbers_without_modules(); `sums`: by stack, most bytes first.
std::vector<RowGroup> without_modules(const std::vector<std::uint32_t>& numbers, const std::vector<RowSum>& sums) {
  std::unordered_map<std::uint64_t, std::size_t> places;
  std::vector<RowGroup> groups;
  for (const RowSum& sum : sums) {
    const bool known = sum.key < numbers.size();
    const std::uint64_t number = known ? numbers[sum.key] : numbers.size();  // without a stack: one group
    const auto [place, is_new] = places.try_emplace(number, groups.size());
    if (is_new) groups.push_back({{sum.key, 0, 0}, {}});
    RowGroup& group = groups[place->second];
    group.sum.bytes += sum.bytes;
    group.sum.blocks += sum.blocks;
    if (known) group.stacks.push_back(StackId{static_cast<std::uint32_t>(sum.key)});
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), [](const RowGroup& group) { return group.sum.bytes; });
  return groups;
}

// Groups of blocks, as numbers; key_of() below converts them back.
class Groups {
 public:
  Groups(const Store& store, GroupBy by, std::optional<OwnerGroups> owners)
      : blocks_(store.blocks), by_(by), owners_(std::move(owners)) {
    if (by == GroupBy::annotation) annotations_ = annotations_of_blocks(store);
    if (by == GroupBy::stack) layerless_ = numbers_without_modules(store.definitions);
  }
  [[nodiscard]] std::uint64_t of(std::size_t block) const;
  [[nodiscard]] const std::optional<OwnerGroups>& owners() const { return owners_; }
  /// By stack: numbers_without_modules().
  [[nodiscard]] const std::vector<std::uint32_t>& layerless() const { return layerless_; }

 private:
  const Blocks& blocks_;
  const GroupBy by_;
  std::vector<StringId> annotations_;  // by block
  std::vector<std::uint32_t> layerless_;
  std::optional<OwnerGroups> owners_;  // if the rows are grouped by an OwnerKind
};

std::uint64_t Groups::of(std::size_t block) const {
  switch (by_) {
    case GroupBy::stack:
      return blocks_.stack[block].value;
    case GroupBy::size:
      return blocks_.size[block];
    case GroupBy::thread:
      return blocks_.thread[block].value;
    case GroupBy::stream:
      return blocks_.stream[block];
    case GroupBy::pool:
      return blocks_.pool[block];
    case GroupBy::annotation:
      return annotations_[block].value;
    case GroupBy::device:
      return 0;  // blocks of one device at a time: one group
    case GroupBy::category:
    case GroupBy::component:
    case GroupBy::layer:
    case GroupBy::module:
    case GroupBy::phase:
    case GroupBy::step:
      break;
  }
  return owners_->of(block);
}

std::vector<RowSum> largest_first(const Store& store, const std::vector<BlockId>& live, const Groups& groups) {
  std::unordered_map<std::uint64_t, RowSum> sums;
  for (const BlockId block : live) {
    RowSum& sum = sums[groups.of(block.value)];
    sum.bytes += store.blocks.size[block.value];
    ++sum.blocks;
  }
  std::vector<RowSum> sorted;
  sorted.reserve(sums.size());
  for (auto& [key, sum] : sums) {
    sum.key = key;
    sorted.push_back(sum);
  }
  std::sort(sorted.begin(), sorted.end(), [](const RowSum& left, const RowSum& right) {
    return left.bytes != right.bytes ? left.bytes > right.bytes : left.key < right.key;
  });
  return sorted;
}

decltype(TableRow::key) key_of(const Store& store, Symbols& symbols, GroupBy by, const Groups& groups,
                               std::uint64_t group) {
  if (groups.owners()) return groups.owners()->owner(static_cast<std::uint32_t>(group));
  switch (by) {
    case GroupBy::stack:
      return name_stack(symbols, StackId{static_cast<std::uint32_t>(group)});
    case GroupBy::thread:
      return group < store.definitions.threads.size() ? store.definitions.threads[group] : ThreadInfo{};
    case GroupBy::stream:
      return StreamHandle{store.streams[group]};
    case GroupBy::pool:
      return store.pools[group];
    case GroupBy::annotation:
      if (group >= store.definitions.strings.size()) return BlockAnnotation{};
      return BlockAnnotation{store.definitions.strings[group]};
    default:
      break;
  }
  return BlockSize{group};
}

std::uint64_t total_bytes(const std::vector<RowSum>& sums) {
  std::uint64_t bytes = 0;
  for (const RowSum& sum : sums) bytes += sum.bytes;
  return bytes;
}

// PyTorch gives private pools numbers only: what allocates in one names it.
void name_pools(const Store& store, Symbols& symbols, const std::vector<BlockId>& blocks, TableSection& section) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<StackId, std::uint64_t>> bytes;  // by the pool's id
  for (const BlockId block : blocks) {
    const StackId stack = store.blocks.stack[block.value];
    const PoolId& pool = store.pools[store.blocks.pool[block.value]];
    if (stack.valid()) bytes[{pool.first, pool.second}][stack] += store.blocks.size[block.value];
  }
  for (TableRow& row : section.rows) {
    const auto& id = std::get<PoolId>(row.key);
    const auto pool = bytes.find({id.first, id.second});
    if (pool == bytes.end()) continue;
    const auto most = std::ranges::max_element(pool->second, {}, [](const auto& of) { return of.second; });
    row.most_by = name_stack(symbols, most->first);
  }
}

TableSection section_of_device(const Store& store, Symbols& symbols, const TableOptions& options, const Groups& groups,
                               std::size_t device) {
  const HeldBlocks held = held_blocks(store, options.at, device, options.filter);
  const std::vector<RowSum> sums = largest_first(store, held.blocks, groups);
  TableSection section;
  section.device = DeviceAt{store.devices[device].device, held.time_ns};
  section.unrecorded_bytes = held.unrecorded_bytes;
  section.allocated_bytes = total_bytes(sums) + held.unrecorded_bytes;
  std::vector<RowGroup> rows;
  if (options.by == GroupBy::stack) {
    rows = without_modules(groups.layerless(), sums);
  } else {
    for (const RowSum& sum : sums) rows.push_back({sum, {}});
  }
  for (const auto& [sum, stacks] : rows) {
    if (options.top != 0 && section.rows.size() == options.top) {
      ++section.other_rows;
      section.other_bytes += sum.bytes;
      section.other_blocks += sum.blocks;
      continue;
    }
    section.rows.push_back({key_of(store, symbols, options.by, groups, sum.key), sum.bytes, sum.blocks,
                            share_of(sum.bytes, section.allocated_bytes).value_or(0)});
    if (stacks.size() < 2) continue;
    section.rows.back().stacks = stacks.size();
    share_modules(std::get<NamedStack>(section.rows.back().key), symbols, stacks);
  }
  if (options.by == GroupBy::pool) name_pools(store, symbols, held.blocks, section);
  if (options.by == GroupBy::stack) {
    tell_rows_apart(section.rows, [](TableRow& row) -> NamedStack& { return std::get<NamedStack>(row.key); });
  }
  return section;
}

TableSection section_of_all(const Store& store, const TableOptions& options, const Groups& groups,
                            const std::vector<std::size_t>& devices) {
  TableSection section;
  for (const std::size_t device : devices) {
    const HeldBlocks held = held_blocks(store, options.at, device, options.filter);
    TableRow row;
    row.key = DeviceAt{store.devices[device].device, held.time_ns};
    row.bytes = held.unrecorded_bytes;
    for (const RowSum& sum : largest_first(store, held.blocks, groups)) {
      row.bytes += sum.bytes;
      row.blocks += sum.blocks;
    }
    section.allocated_bytes += row.bytes;
    section.rows.push_back(std::move(row));
  }
  for (TableRow& row : section.rows) row.share = share_of(row.bytes, section.allocated_bytes).value_or(0);
  return section;
}

}  // namespace

Result<Table> analyze_table(const Store& store, Symbols& symbols, const TableOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  if ((options.by == GroupBy::stream || options.by == GroupBy::pool) &&
      store.blocks.stream.size() != store.blocks.count()) {
    return Error{fmt::format("{}: no {} data for its blocks (only PyTorch snapshots contain it)", store.path,
                             options.by == GroupBy::stream ? "stream" : "pool")};
  }
  if (options.by == GroupBy::annotation && store.definitions.marks.empty() && store.blocks.metadata.empty()) {
    return Error{
        fmt::format("{}: no annotations (PyTorch snapshots: torch.profiler.record_function with "
                    "_record_memory_history(global_record_annotations=True); recordings: tidemark_range_begin)",
                    store.path)};
  }
  std::optional<OwnerGroups> owners;
  if (const auto kind = value_in(kOwnerKindNames, name_of(options.by))) {
    auto made = OwnerGroups::create(store, *options.attribution, *kind);
    if (!made) return made.error();
    owners = std::move(*made);
  }
  const Groups groups(store, options.by, std::move(owners));
  Table table;
  table.by = options.by;
  if (options.by == GroupBy::device) {
    if (!selected->empty()) table.sections.push_back(section_of_all(store, options, groups, *selected));
  } else {
    for (const std::size_t device : *selected) {
      table.sections.push_back(section_of_device(store, symbols, options, groups, device));
    }
  }
  table.recording = describe_recording(store, symbols);
  return table;
}

}  // namespace tidemark
