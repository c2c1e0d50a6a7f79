#include "analyze/fragmentation/fragmentation.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "analyze/common/devices.h"
#include "analyze/common/totals.h"

namespace tidemark {
namespace {

using State = MapBlock::State;

std::optional<double> one_minus(std::optional<std::uint64_t> part, std::optional<std::uint64_t> whole) {
  if (!part || !whole || *whole == 0 || *part > *whole) return std::nullopt;
  return 1 - static_cast<double>(*part) / static_cast<double>(*whole);
}

// What the allocator's own totals say: no map needed.
void take_totals(const Store& store, std::size_t device, const TracePosition& position,
                 FragmentationMeasures& measures) {
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (totals.device != device || totals.change_count > position.change_count || totals.time_ns > position.time_ns)
      return;
    measures.allocated = totals.allocated_bytes;
    measures.reserved = totals.reserved_bytes;
    measures.active = totals.active_bytes;
  });
}

void take_map(const Store& store, const std::vector<MapSegment>& map, FragmentationMeasures& measures) {
  std::uint64_t used = 0;
  std::uint64_t pending = 0;
  std::uint64_t requested = 0;
  std::uint64_t reserved = 0;
  measures.free = measures.free_blocks = measures.largest_free = measures.releasable = measures.inactive_split = 0;
  for (const MapSegment& segment : map) {
    reserved += segment.size;
    for (const MapBlock& block : segment.blocks) {
      if (block.state != State::free) {
        (block.state == State::allocated ? used : pending) += block.size;
        if (block.state == State::allocated) requested += store.blocks.requested[block.block.value];
        continue;
      }
      ++*measures.free_blocks;
      *measures.free += block.size;
      measures.largest_free = std::max(*measures.largest_free, block.size);
      if (block.size == segment.size) {
        *measures.releasable += block.size;
      } else if (!segment.expandable) {
        *measures.inactive_split += block.size;
      }
    }
  }
  measures.allocated = used;
  measures.active = used + pending;
  measures.reserved = reserved;
  measures.rounding = used - std::min(used, requested);
}

FragmentationMeasures measure(const Store& store, std::size_t device, const TracePosition& position) {
  FragmentationMeasures measures;
  measures.time_ns = position.time_ns;
  if (store.segment_changes.empty()) {
    take_totals(store, device, position, measures);
  } else {
    take_map(store, segment_map(store, device, position), measures);
  }
  return measures;
}

std::size_t class_of(std::uint64_t bytes) {
  constexpr std::size_t kFirst = 9;  // below 1 KiB: PyTorch's smallest block has 512 bytes
  const auto width = static_cast<std::size_t>(std::bit_width(bytes));
  return width <= kFirst + 1 ? 0 : width - kFirst - 1;
}

std::vector<SizeClass> size_classes(const Store& store, std::size_t device, const TracePosition& position,
                                    const std::vector<MapSegment>& map) {
  std::vector<SizeClass> classes(64);
  for (std::size_t index = 1; index < classes.size(); ++index) {
    classes[index].from = index + 9 < 64 ? std::uint64_t{1} << (index + 9) : 0;
  }
  const Blocks& blocks = store.blocks;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device) continue;
    SizeClass& sizes = classes[class_of(blocks.size[block])];
    ++sizes.allocations;
    if (!blocks.alive(block, position.change_count)) continue;
    ++sizes.live_blocks;
    sizes.live_bytes += blocks.size[block];
  }
  for (const MapSegment& segment : map) {
    for (const MapBlock& block : segment.blocks) {
      if (block.state != State::free) continue;
      SizeClass& sizes = classes[class_of(block.size)];
      ++sizes.free_blocks;
      sizes.free_bytes += block.size;
    }
  }
  std::erase_if(classes, [](const SizeClass& sizes) { return sizes.allocations == 0 && sizes.free_blocks == 0; });
  return classes;
}

void find_pinning(Symbols& symbols, const std::vector<MapSegment>& map, std::size_t top, FragmentationDevice& result) {
  struct Pinning {
    std::uint64_t segments = 0, blocks = 0, bytes = 0, pinned = 0;
  };
  std::map<StackId, Pinning> stacks;
  for (const MapSegment& segment : map) {
    const std::uint64_t free = segment.bytes(State::free);
    if (free == 0 || free == segment.size || segment.expandable) continue;
    std::set<StackId> holders;
    for (const MapBlock& block : segment.blocks) {
      if (block.state == State::free) continue;
      Pinning& pinning = stacks[block.stack];
      ++pinning.blocks;
      pinning.bytes += block.size;
      if (holders.insert(block.stack).second) ++pinning.segments;
    }
    if (holders.size() == 1) stacks[*holders.begin()].pinned += free;
  }
  std::vector<std::pair<StackId, Pinning>> sorted(stacks.begin(), stacks.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    if (left.second.pinned != right.second.pinned) return left.second.pinned > right.second.pinned;
    return left.second.segments != right.second.segments ? left.second.segments > right.second.segments
                                                         : left.first < right.first;
  });
  if (top != 0 && sorted.size() > top) {
    result.other_pinning = sorted.size() - top;
    sorted.resize(top);
  }
  for (const auto& [stack, pinning] : sorted) {
    result.pinning.push_back(
        {name_stack(symbols, stack), pinning.segments, pinning.blocks, pinning.bytes, pinning.pinned});
  }
  tell_rows_apart(result.pinning, &PinningStack::stack);
}

void list_segments(std::vector<MapSegment> map, std::size_t top, FragmentationDevice& result) {
  std::erase_if(map, [](const MapSegment& segment) { return segment.bytes(State::free) == 0; });
  result.empty_segments =
      std::erase_if(map, [](const MapSegment& segment) { return segment.bytes(State::free) == segment.size; });
  std::stable_sort(map.begin(), map.end(), [](const MapSegment& left, const MapSegment& right) {
    return left.bytes(State::free) > right.bytes(State::free);
  });
  for (std::size_t index = top; top != 0 && index < map.size(); ++index) {
    ++result.other_segments;
    result.other_free_bytes += map[index].bytes(State::free);
  }
  if (top != 0 && map.size() > top) map.resize(top);
  result.segments = std::move(map);
}

template <typename Share>
std::optional<ShareTrend> trend_over(const std::vector<FragmentationMeasures>& over_time, const Share& share) {
  std::vector<std::optional<double>> shares;
  shares.reserve(over_time.size());
  for (const FragmentationMeasures& measures : over_time) shares.push_back(share(measures));
  return trend_of(shares);
}

FragmentationDevice analyze_device(const Store& store, Symbols& symbols, std::size_t device,
                                   const FragmentationOptions& options) {
  FragmentationDevice result;
  result.totals = store.devices[device];
  result.knows_segments = !store.segment_changes.empty();
  const auto measured = [&](const std::optional<TracePosition>& position) -> std::optional<FragmentationMeasures> {
    if (!position) return std::nullopt;
    return measure(store, device, *position);
  };
  result.at_peak_allocated = measured(position_at(store, device, Moment{}));
  result.at_peak_reserved = measured(position_at_peak_reserved(store, device));
  result.at_end = measure(store, device, *position_at(store, device, Moment{Moment::Kind::end, 0, 0}));
  for (std::size_t sample = 1; sample <= options.samples; ++sample) {
    const double share = static_cast<double>(sample) / static_cast<double>(options.samples);
    result.over_time.push_back(
        measure(store, device, *position_at(store, device, Moment{Moment::Kind::share, 0, share})));
  }
  result.unused_trend =
      trend_over(result.over_time, [](const FragmentationMeasures& measures) { return measures.unused_share(); });
  result.external_trend =
      trend_over(result.over_time, [](const FragmentationMeasures& measures) { return measures.external_share(); });
  const std::optional<TracePosition> moment = position_at(store, device, options.at);
  result.at_moment = measured(moment);
  if (!moment) return result;
  std::vector<MapSegment> map = segment_map(store, device, *moment);
  result.sizes = size_classes(store, device, *moment, map);
  find_pinning(symbols, map, options.top, result);
  list_segments(map, options.top, result);
  result.map = std::move(map);
  return result;
}

}  // namespace

std::optional<double> FragmentationMeasures::unused_share() const {
  return one_minus(allocated, reserved);
}
std::optional<double> FragmentationMeasures::external_share() const {
  return one_minus(largest_free, free);
}
std::optional<double> FragmentationDevice::peak_share() const {
  return one_minus(totals.peak_active_bytes, totals.peak_reserved_bytes);
}

Result<Fragmentation> analyze_fragmentation(const Store& store, Symbols& symbols, const FragmentationOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  Fragmentation fragmentation;
  for (const std::size_t device : *selected) {
    fragmentation.devices.push_back(analyze_device(store, symbols, device, options));
  }
  fragmentation.recording = describe_recording(store, symbols);
  return fragmentation;
}

bool wants_simulation(const Fragmentation& fragmentation) {
  static constexpr double kWorthIt = 0.1;
  return std::any_of(fragmentation.devices.begin(), fragmentation.devices.end(), [](const FragmentationDevice& device) {
    return device.knows_segments && device.peak_share().value_or(0) >= kWorthIt;
  });
}

}  // namespace tidemark
