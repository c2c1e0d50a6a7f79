#include "analyze/usage/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "base/uint128.h"
#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kMillion = 1e6;
constexpr double kMaxShare = 9e18;  // fits 64 bits

/// One recording of the two, and the numbers of its stacks.
struct Side {
  const ComparedRecording& recording;
  Symbols& symbols;
  std::vector<std::uint32_t> numbers;            // by StackId
  std::map<StackId, std::uint32_t> owners = {};  // the same for owners

  [[nodiscard]] const DeviceSummary* find(Device device) const {
    for (const DeviceSummary& summary : recording.overview.devices) {
      if (summary.device == device) return &summary;
    }
    return nullptr;
  }
  [[nodiscard]] std::uint32_t number_of(StackId stack) const {
    if (const auto owner = owners.find(stack); owner != owners.end()) return owner->second;
    return stack.value < numbers.size() ? numbers[stack.value] : StackMatcher::kNoStack;
  }
};

/// Gives owners of the same name the same number, from 1.
void number_owners(Side& side, std::map<std::optional<std::string>, std::uint32_t>& numbers) {
  for (const auto& [group, owner] : side.recording.owners) {
    const auto number = static_cast<std::uint32_t>(numbers.size()) + 1;
    side.owners[group] = numbers.try_emplace(owner.name, number).first->second;
  }
}

NamedStack named(const Side& side, StackId stack) {
  const auto owner = side.recording.owners.find(stack);
  if (owner == side.recording.owners.end()) return name_stack(side.symbols, stack);
  NamedStack named;
  named.owner = owner->second;
  return named;
}

/// A stack in both recordings, before it has names.
struct Match {
  std::uint32_t number = StackMatcher::kNoStack;
  std::optional<StackId> in_a;  // one of the stacks with this number; nullopt: none of its blocks is in A
  std::optional<StackId> in_b;
  ComparedStack values;
};

ComparedTotal total(const DeviceSummary* a, const DeviceSummary* b, auto DeviceSummary::*value) {
  ComparedTotal both;
  if (a != nullptr) both.a = a->*value;
  if (b != nullptr) both.b = b->*value;
  return both;
}

std::optional<std::uint64_t> unrecorded_at_peak(const DeviceSummary* device) {
  if (device == nullptr) return std::nullopt;
  const auto bytes = static_cast<std::int64_t>(device->peak_allocated_bytes - device->peak_recorded_bytes);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void add(const Side& side, Device device, std::optional<StackId> Match::*id, std::uint64_t ComparedValue::*value,
         std::unordered_map<std::uint32_t, Match>& matches) {
  for (const StackTotals& totals : side.recording.stacks) {
    if (side.recording.overview.devices[totals.device].device != device) continue;
    Match& match = matches[side.number_of(totals.stack)];
    if (!(match.*id)) match.*id = totals.stack;
    match.values.peak_bytes.*value += totals.peak_bytes;
    match.values.peak_blocks.*value += totals.peak_blocks;
    match.values.traffic_bytes.*value = saturating_add(match.values.traffic_bytes.*value, totals.traffic_bytes);
    match.values.allocations.*value += totals.allocations;
  }
}

const ComparedValue& bytes_of(const ComparedStack& stack, CompareBy by) {
  return by == CompareBy::peak ? stack.peak_bytes : stack.traffic_bytes;
}

ChangeKind kind_of(const Match& match, CompareBy by) {
  const ComparedValue& bytes = bytes_of(match.values, by);
  const ComparedValue& count = by == CompareBy::peak ? match.values.peak_blocks : match.values.allocations;
  if (bytes.a == bytes.b && count.a == count.b) return ChangeKind::unchanged;
  if (!match.in_a) return ChangeKind::added;
  if (!match.in_b) return ChangeKind::removed;
  return std::tie(bytes.a, count.a) < std::tie(bytes.b, count.b) ? ChangeKind::grew : ChangeKind::shrank;
}

ChangeGroup& group_of(ComparedDevice& device, ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added:
      return device.added;
    case ChangeKind::removed:
      return device.removed;
    case ChangeKind::grew:
      return device.grew;
    case ChangeKind::shrank:
      return device.shrank;
    case ChangeKind::unchanged:
      break;
  }
  return device.unchanged;
}

/// Every stack on one device, the largest change first.
std::vector<Match> match_stacks(const Side& a, const Side& b, Device device, CompareBy by) {
  std::unordered_map<std::uint32_t, Match> matches;
  add(a, device, &Match::in_a, &ComparedValue::a, matches);
  add(b, device, &Match::in_b, &ComparedValue::b, matches);
  std::vector<Match> sorted;
  sorted.reserve(matches.size());
  for (auto& [number, match] : matches) {
    match.number = number;
    match.values.kind = kind_of(match, by);
    sorted.push_back(std::move(match));
  }
  const auto size_of_change = [by](const Match& match) {
    const ComparedValue& bytes = bytes_of(match.values, by);
    return std::max(bytes.a, bytes.b) - std::min(bytes.a, bytes.b);
  };
  std::sort(sorted.begin(), sorted.end(), [&](const Match& left, const Match& right) {
    const std::uint64_t change_left = size_of_change(left);
    const std::uint64_t change_right = size_of_change(right);
    return change_left != change_right ? change_left > change_right : left.number < right.number;
  });
  return sorted;
}

std::vector<ComparedCategory> compare_categories(const ComparedRecording& a, const ComparedRecording& b,
                                                 Device device) {
  if (!a.breakdown || !b.breakdown) return {};
  std::map<Category, ComparedValue> values;
  const auto add = [&](const Breakdown& breakdown, std::uint64_t ComparedValue::*side) {
    for (const CategoryBytes& part : categories_of(breakdown, device)) values[part.category].*side = part.bytes;
  };
  add(*a.breakdown, &ComparedValue::a);
  add(*b.breakdown, &ComparedValue::b);
  std::vector<ComparedCategory> categories;
  for (const auto& [category, bytes] : values) categories.push_back({category, bytes});
  std::ranges::stable_sort(categories, std::ranges::greater(),
                           [](const ComparedCategory& each) { return magnitude(each.bytes.change()); });
  return categories;
}

ComparedDevice compare_device(const Side& a, const Side& b, Device device, const CompareOptions& options) {
  const DeviceSummary* in_a = a.find(device);
  const DeviceSummary* in_b = b.find(device);
  ComparedDevice result;
  result.device = device;
  result.in_a = in_a != nullptr;
  result.in_b = in_b != nullptr;
  result.peak_allocated = total(in_a, in_b, &DeviceSummary::peak_allocated_bytes);
  result.peak_reserved = total(in_a, in_b, &DeviceSummary::peak_reserved_bytes);
  result.peak_active = total(in_a, in_b, &DeviceSummary::peak_active_bytes);
  result.allocations = total(in_a, in_b, &DeviceSummary::allocation_count);
  result.traffic = total(in_a, in_b, &DeviceSummary::total_bytes_allocated);
  result.unrecorded_at_peak = {unrecorded_at_peak(in_a), unrecorded_at_peak(in_b)};
  if (!result.in_a || !result.in_b) return result;
  for (Match& match : match_stacks(a, b, device, options.by)) {
    const std::int64_t change = bytes_of(match.values, options.by).change();
    ChangeGroup& group = group_of(result, match.values.kind);
    ++group.stacks;
    group.bytes = saturating_add(group.bytes, change);
    if (match.values.kind == ChangeKind::unchanged) continue;
    if (options.top != 0 && result.rows.size() == options.top) {
      ++result.other_rows;
      result.other_change = saturating_add(result.other_change, change);
      continue;
    }
    if (match.number != StackMatcher::kNoStack) {
      match.values.stack = match.in_b ? named(b, *match.in_b) : named(a, *match.in_a);
    }
    result.rows.push_back(std::move(match.values));
  }
  tell_rows_apart(result.rows, &ComparedStack::stack);
  return result;
}

/// The devices of A and of B.
Result<std::vector<Device>> select_both(const Overview& a, const Overview& b, const std::optional<std::string>& only) {
  std::vector<Device> devices;
  for (const Overview* overview : {&a, &b}) {
    for (const DeviceSummary& summary : overview->devices) devices.push_back(summary.device);
  }
  std::sort(devices.begin(), devices.end(), listed_before);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  std::string known;
  for (const Device device : devices) known += (known.empty() ? "" : ", ") + to_string(device);
  std::erase_if(devices, [&](Device device) { return only ? to_string(device) != *only : is_driver_memory(device); });
  if (!only) return devices;
  if (!devices.empty()) return devices;
  return Error{fmt::format("no device '{2}' in {0} or {1} (available: {3})", a.path, b.path, *only,
                           known.empty() ? "none: no events recorded" : known)};
}

/// Whether memory on this device would have been seen. Snapshots are of the CUDA allocator.
bool would_have_seen(const Overview& overview, Device device) {
  return overview.source.kind == SourceKind::recording || device.type == DeviceType::cuda;
}

void check_budget(const Overview& a, const Budget& budget, Comparison& result) {
  result.budget = budget;
  for (const ComparedDevice& device : result.devices) {
    if (!device.in_b || (!device.in_a && !would_have_seen(a, device.device))) continue;
    ++result.checked_devices;
    if (budget.exceeded(device.peak_allocated.a.value_or(0), *device.peak_allocated.b)) {
      result.over_budget.push_back({device.device, device.peak_allocated.a, *device.peak_allocated.b});
    }
  }
}

// All but the overview.
ComparedRecording reduce_blocks(const Store& store, const Holders& holders) {
  const Blocks& blocks = store.blocks;
  ComparedRecording result;
  Symbols symbols(store.definitions);
  std::vector<std::uint64_t> unseen = blocks_at_start(store);
  std::unordered_map<std::uint64_t, StackTotals> totals;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const std::uint8_t device = blocks.device[block];
    const bool was_there = unseen[device] != 0;
    if (was_there) --unseen[device];
    if (!holders.lists(block)) continue;
    const StackId stack = holders.of(store, block);
    StackTotals& of_stack = totals[std::uint64_t{device} << 32 | stack.value];
    of_stack.device = device;
    of_stack.stack = stack;
    if (blocks.alive(block, store.devices[device].peak_change_count)) {
      of_stack.peak_bytes += blocks.size[block];
      ++of_stack.peak_blocks;
    }
    if (!was_there) {
      of_stack.traffic_bytes = saturating_add(of_stack.traffic_bytes, blocks.size[block]);
      ++of_stack.allocations;
    }
  }
  result.stacks.reserve(totals.size());
  for (const auto& [key, of_stack] : totals) result.stacks.push_back(of_stack);
  std::sort(result.stacks.begin(), result.stacks.end(), [](const StackTotals& left, const StackTotals& right) {
    return std::tie(left.device, left.stack) < std::tie(right.device, right.stack);
  });
  for (const StackTotals& of_stack : result.stacks) {
    if (!holders.by_owner()) break;
    const auto [entry, is_new] = result.owners.try_emplace(of_stack.stack);
    if (is_new) entry->second = *holders.name(symbols, of_stack.stack).owner;
    result.by = entry->second.kind;
  }
  return result;
}

}  // namespace

bool Budget::exceeded(std::uint64_t before, std::uint64_t now) const {
  if (now <= before) return false;
  const std::uint64_t more = now - before;
  if (!relative) return more > amount;
  return uint128{more} * static_cast<std::uint64_t>(kMillion) > uint128{amount} * before;
}

Result<Budget> parse_budget(std::string_view text) {
  const Error error{fmt::format("invalid value '{}' (expected a share such as 5%, or a size such as 100MiB)", text)};
  if (!text.ends_with('%')) {
    const auto bytes = parse_size(text);
    return bytes ? Result<Budget>(Budget{std::string(text), false, *bytes}) : error;
  }
  double percent = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
  const double share = percent * (kMillion / 100);
  const bool whole = failure == std::errc() && end == text.data() + text.size() - 1;
  if (!whole || !(percent >= 0) || share > kMaxShare) return error;
  return Budget{std::string(text), true, static_cast<std::uint64_t>(std::llround(share))};
}

ComparedRecording reduce_for_compare(Store&& store, const Holders& holders) {
  ComparedRecording result = reduce_blocks(store, holders);
  result.overview = std::move(static_cast<Overview&>(store));
  return result;
}

ComparedRecording reduce_for_compare(const Store& store, const Holders& holders) {
  ComparedRecording result = reduce_blocks(store, holders);
  result.overview = store;
  return result;
}

Result<Comparison> analyze_compare(const ComparedRecording& a, Symbols& symbols_a, const ComparedRecording& b,
                                   Symbols& symbols_b, const CompareOptions& options) {
  const auto selected = select_both(a.overview, b.overview, options.device);
  if (!selected) return selected.error();
  Comparison result;
  result.by = options.by;
  result.matching = choose_matching(a.overview, b.overview, options.ignore_lines);
  StackMatcher matcher(result.matching);
  Side side_a = {a, symbols_a, matcher.numbers(a.overview.definitions, symbols_a)};
  Side side_b = {b, symbols_b, matcher.numbers(b.overview.definitions, symbols_b)};
  std::map<std::optional<std::string>, std::uint32_t> owners;
  number_owners(side_a, owners);
  number_owners(side_b, owners);
  result.owners = a.by ? a.by : b.by;
  for (const Device device : *selected) {
    result.devices.push_back(compare_device(side_a, side_b, device, options));
    ComparedDevice& compared = result.devices.back();
    if (compared.in_a && compared.in_b) compared.categories = compare_categories(a, b, device);
  }
  if (options.budget) check_budget(a.overview, *options.budget, result);
  result.a = describe_recording(a.overview, symbols_a);
  result.b = describe_recording(b.overview, symbols_b);
  result.a.chosen_blocks = a.chosen_blocks;
  result.b.chosen_blocks = b.chosen_blocks;
  return result;
}

}  // namespace tidemark
