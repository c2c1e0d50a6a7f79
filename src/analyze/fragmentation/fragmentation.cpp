#include "analyze/fragmentation/fragmentation.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "allocator/rules.h"
#include "analyze/common/earlier_frees.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/totals.h"
#include "base/units.h"

namespace tidemark {

namespace {

using State = MapBlock::State;

std::optional<double> one_minus(std::optional<std::uint64_t> part, std::optional<std::uint64_t> whole) {
  if (!part || !whole || *whole == 0 || *part > *whole) return std::nullopt;
  return 1 - static_cast<double>(*part) / static_cast<double>(*whole);
}

// The allocator's own totals, which need no map.
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

// Most pinned free bytes first. All blocks pin their segments; only selected blocks are rows.
std::vector<PinningStack> find_pinning(const Store& store, Symbols& symbols, const std::vector<MapSegment>& map,
                                       const Holders& holders) {
  using Row = std::pair<bool, StackId>;  // whether it is listed
  struct Pinning {
    std::uint64_t segments = 0, blocks = 0, bytes = 0, pinned = 0;
  };
  std::map<Row, Pinning> rows;
  for (const MapSegment& segment : map) {
    const std::uint64_t free = segment.bytes(State::free);
    if (free == 0 || free == segment.size || segment.expandable) continue;
    std::set<Row> pinned_by;
    for (const MapBlock& block : segment.blocks) {
      if (block.state == State::free) continue;
      const Row row = {holders.lists(block.block.value), holders.of(store, block.block.value)};
      Pinning& pinning = rows[row];
      ++pinning.blocks;
      pinning.bytes += block.size;
      if (pinned_by.insert(row).second) ++pinning.segments;
    }
    if (pinned_by.size() == 1) rows[*pinned_by.begin()].pinned += free;
  }
  std::vector<std::pair<Row, Pinning>> sorted(rows.begin(), rows.end());
  std::erase_if(sorted, [](const auto& row) { return !row.first.first; });
  std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    if (left.second.pinned != right.second.pinned) return left.second.pinned > right.second.pinned;
    return left.second.segments != right.second.segments ? left.second.segments > right.second.segments
                                                         : left.first < right.first;
  });
  std::vector<PinningStack> list;
  list.reserve(sorted.size());
  for (const auto& [row, pinning] : sorted) {
    list.push_back(
        {holders.name(symbols, row.second), pinning.segments, pinning.blocks, pinning.bytes, pinning.pinned});
  }
  return list;
}

void list_pinning(std::vector<PinningStack> all, std::size_t top, FragmentationDevice& result) {
  if (top != 0 && all.size() > top) {
    result.other_pinning = all.size() - top;
    all.resize(top);
  }
  result.pinning = std::move(all);
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
  auto trend = trend_of(shares);
  if (trend) {
    trend->begin_ns = over_time[over_time.size() - trend->points].time_ns;
    trend->end_ns = over_time.back().time_ns;
  }
  return trend;
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
    Moment at{Moment::Kind::share, 0, share};
    if (options.begin_ns > 0) {
      const std::uint64_t length = store.end_ns - std::min(store.end_ns, options.begin_ns);
      at = {Moment::Kind::time, options.begin_ns + static_cast<std::uint64_t>(share * static_cast<double>(length)), 0};
    }
    result.over_time.push_back(measure(store, device, *position_at(store, device, at)));
  }
  result.external_trend =
      trend_over(result.over_time, [](const FragmentationMeasures& measures) { return measures.external_share(); });
  result.unused = describe_unused(unused_cells(store, device, options.begin_ns), sampled_free_at_end(store, device));
  result.advice = find_fragmentation_advice(store, device, result.unused);
  const std::optional<TracePosition> moment = position_at(store, device, options.at);
  result.at_moment = measured(moment);
  if (!moment) return result;
  std::vector<MapSegment> map = segment_map(store, device, *moment);
  result.sizes = size_classes(store, device, *moment, map);
  list_pinning(find_pinning(store, symbols, map, options.holders), options.top, result);
  if (options.categories) {
    result.pinning_categories = find_pinning(store, symbols, map, *options.categories);
    const BlockOwner unknown = {OwnerKind::category, std::string(name_in(kCategoryNames, Category::unknown))};
    const auto says_nothing = [&](const PinningStack& row) { return row.stack.owner == unknown; };
    if (std::all_of(result.pinning_categories.begin(), result.pinning_categories.end(), says_nothing)) {
      result.pinning_categories.clear();
    }
  }
  list_segments(map, options.top, result);
  result.map = std::move(map);
  return result;
}

constexpr double kMuch = 0.1;            // of the reserved memory
constexpr double kMaxError = 0.05;       // of the recorded peak reserved: maximum error of a replay
constexpr std::uint64_t kManySizes = 8;  // with fewer sizes, blocks find a free block of the same size

class AdviceFinder {
 public:
  AdviceFinder(const Store& store, std::size_t device, const UnusedMemory& unused)
      : store_(store), device_(device), unused_(unused) {
    const Blocks& blocks = store.blocks;
    for (std::size_t block = 0; block < blocks.count(); ++block) {
      if (blocks.device[block] != device || blocks.size[block] <= pytorch::kSmallSize) continue;
      if (store.live_changes[blocks.birth_change[block]].time_ns >= unused.begin_ns)
        sizes_.push_back(blocks.size[block]);
    }
    std::ranges::sort(sizes_);
  }

  std::vector<FragmentationAdvice> find() {
    if (unused_.pattern == UnusedPattern::held_peak) {
      add(FragmentationAdviceKind::empty_cache);
    } else if (!is_expandable()) {
      expandable();
    }
    if (found_.empty()) add(FragmentationAdviceKind::search);
    return found_;
  }

 private:
  FragmentationAdvice& add(FragmentationAdviceKind kind) {
    FragmentationAdvice& advice = found_.emplace_back();
    advice.kind = kind;
    advice.bytes = unused_.idle;
    return advice;
  }

  [[nodiscard]] const std::optional<pytorch::AllocatorSettings>& settings() const {
    return store_.source.allocator_settings;
  }
  [[nodiscard]] bool is_expandable() const { return settings() && settings()->expandable_segments.value_or(false); }

  void expandable() {
    std::vector<std::uint64_t> each = sizes_;
    each.erase(std::unique(each.begin(), each.end()), each.end());
    const std::uint64_t different = each.size();
    if (different < kManySizes) return;
    FragmentationAdvice& advice = add(FragmentationAdviceKind::expandable_segments);
    // They save at most what was reserved beyond the most that was allocated: with pages instead of segments, free
    // memory of one size serves blocks of all sizes.
    const DeviceSummary& totals = store_.devices[device_];
    const std::uint64_t reserved = totals.peak_reserved_bytes.value_or(0);
    advice.bytes = std::max(advice.bytes, reserved - std::min(reserved, totals.peak_allocated_bytes));
    advice.sizes = different;
    advice.blocks = sizes_.size();
  }

  const Store& store_;
  std::size_t device_;
  const UnusedMemory& unused_;
  std::vector<std::uint64_t> sizes_;  // of blocks in the large pool, ascending
  std::vector<FragmentationAdvice> found_;
};

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
    return (device.knows_segments && device.peak_share().value_or(0) >= kWorthIt) || is_fragmented(device.unused);
  });
}

void cite_simulation(Simulation simulation, Fragmentation& fragmentation) {
  for (FragmentationDevice& device : fragmentation.devices) {
    cite_simulation(simulation, device.totals.device, device.advice);
  }
  fragmentation.simulation = std::move(simulation);
}

bool is_fragmented(const UnusedMemory& unused) {
  if (!unused.known()) return false;
  if (unused.grows() && unused.seconds_to_limit) return true;
  return unused.idle_share() >= kMuch && is_worth_advice(unused.idle, unused.reserved);
}

std::vector<FragmentationAdvice> find_fragmentation_advice(const Store& store, std::size_t device,
                                                           const UnusedMemory& unused) {
  return is_fragmented(unused) ? AdviceFinder(store, device, unused).find() : std::vector<FragmentationAdvice>();
}

void cite_simulation(const Simulation& simulation, Device device, std::vector<FragmentationAdvice>& advice) {
  const auto found = std::ranges::find(simulation.devices, device, &SimulatedDevice::device);
  if (advice.empty() || found == simulation.devices.end() || simulation.runs.empty()) return;
  const auto index = static_cast<std::size_t>(found - simulation.devices.begin());
  const std::uint64_t recorded = found->recorded.peak_reserved;
  const std::uint64_t reserved = simulation.check.devices[index].peak_reserved;
  const std::uint64_t error = std::max(recorded, reserved) - std::min(recorded, reserved);
  if (static_cast<double>(error) > kMaxError * static_cast<double>(recorded)) return;
  std::erase_if(advice,
                [](const FragmentationAdvice& each) { return each.kind != FragmentationAdviceKind::empty_cache; });
  const SimulatedSettings& best = simulation.runs.front();
  const auto saving = simulation.saving(best, index);
  if (!saving || *saving <= 0 || !is_worth_advice(static_cast<std::uint64_t>(*saving), reserved)) return;
  FragmentationAdvice& settings = advice.emplace_back();
  settings.kind = FragmentationAdviceKind::settings;
  settings.bytes = static_cast<std::uint64_t>(*saving);
  settings.reserved = reserved;
  settings.settings = best.settings;
}

}  // namespace tidemark
