#include "analyze/timeline/timeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/attribution/phase_runs.h"
#include "analyze/common/call_sites.h"
#include "analyze/common/driver_calls.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/thinner.h"
#include "analyze/common/totals.h"
#include "analyze/ledger/memory_owner.h"
#include "analyze/steps/training_steps.h"
#include "store/store.h"

namespace tidemark {

namespace {

/// Follows the events of a store. Bytes are the sum of the `library` lines of a ledger of the same time, except for
/// memory of PyTorch's allocator beyond its reserved memory. The store must outlive it and not change.
class DriverBytes {
 public:
  explicit DriverBytes(const Store& store) : store_(store), owners_(store.definitions) {}

  /// To be called for each state of walk_totals(). Returns the GPU whose bytes it changed, if it did.
  std::optional<Device> take(const DeviceTotals& totals);
  /// Held by libraries so far.
  [[nodiscard]] std::uint64_t bytes(Device gpu) const;

  /// Whether calls to the driver were recorded, and the device is one that they can be about.
  [[nodiscard]] static bool known(const Overview& overview, Device device);

 private:
  const Store& store_;
  MemoryOwners owners_;
  std::uint64_t taken_ = 0;             // of Store::live_changes, so many were taken
  std::map<int, std::uint64_t> bytes_;  // by the GPU's index
};

std::optional<Device> DriverBytes::take(const DeviceTotals& totals) {
  const Device device = store_.devices[totals.device].device;
  const std::uint64_t before = taken_;
  taken_ = totals.change_count;
  // The driver's devices have no totals: each of their states is one live change, the last.
  if (device.type != DeviceType::cuda_driver || taken_ == before) return std::nullopt;
  const LiveChange& change = store_.live_changes[taken_ - 1];
  if (owners_.of(store_.blocks.stack[change.block.value]) == MemoryOwners::kTorchAllocator) return std::nullopt;
  const std::uint64_t size = store_.blocks.size[change.block.value];
  std::uint64_t& bytes = bytes_[device.index];
  bytes = change.birth ? bytes + size : bytes - size;
  return Device{DeviceType::cuda, device.index};
}

std::uint64_t DriverBytes::bytes(Device gpu) const {
  const auto found = bytes_.find(gpu.index);
  return found == bytes_.end() ? 0 : found->second;
}

bool DriverBytes::known(const Overview& overview, Device device) {
  return device.type == DeviceType::cuda && has_driver_calls(overview);
}

using PointThinner = Thinner<TimelinePoint>;

std::vector<PointThinner::Measure> measures_of(const TimelineSeries& series) {
  std::vector<PointThinner::Measure> measures = {
      [](const TimelinePoint& point) { return std::optional(point.allocated_bytes); },
      [](const TimelinePoint& point) { return point.reserved_bytes; }};
  if (series.peak_active_bytes) {
    measures.push_back([](const TimelinePoint& point) { return point.active_bytes; });
  }
  if (series.peak_driver_bytes) {
    measures.push_back([](const TimelinePoint& point) { return point.driver_bytes; });
  }
  return measures;
}

// The points of one device. Not movable.
class SeriesBuilder {
 public:
  /// `all`: of all memory of the device, not of some blocks.
  SeriesBuilder(const Overview& overview, const DeviceSummary& summary, bool all, std::size_t points)
      : series_(describe(overview, summary, all)),
        thinner_(overview.end_ns, points, measures_of(series_), series_.points) {
    last_.allocated_bytes = summary.baseline_bytes.value_or(0);
    last_.driver_bytes = series_.peak_driver_bytes;
  }

  [[nodiscard]] Device device() const { return series_.device; }
  void take(const DeviceTotals& totals) {
    last_ = {totals.time_ns,      totals.allocated_bytes, totals.reserved_bytes,
             totals.active_bytes, last_.driver_bytes,     totals.change_count};
    thinner_.add(last_);
  }
  void take_driver(const DeviceTotals& totals, std::uint64_t bytes) {
    last_.time_ns = totals.time_ns;
    last_.change_count = totals.change_count;
    last_.driver_bytes = bytes;
    if (bytes > series_.peak_driver_bytes) {
      series_.peak_driver_bytes = bytes;
      series_.peak_driver_at_ns = totals.time_ns;
    }
    thinner_.add(last_);
  }
  [[nodiscard]] TimelineSeries finish(std::uint64_t end_ns) {
    thinner_.flush();
    last_.time_ns = end_ns;
    series_.points.push_back(last_);
    return std::move(series_);
  }

 private:
  static TimelineSeries describe(const Overview& overview, const DeviceSummary& summary, bool all) {
    TimelineSeries series;
    series.device = summary.device;
    series.peak_allocated_bytes = summary.peak_allocated_bytes;
    series.peak_allocated_at_ns = summary.peak_allocated_at_ns;
    series.peak_reserved_bytes = summary.peak_reserved_bytes;
    series.peak_active_bytes = summary.peak_active_bytes;
    if (all && DriverBytes::known(overview, summary.device)) series.peak_driver_bytes = 0;
    return series;
  }

  TimelineSeries series_;
  TimelinePoint last_;
  PointThinner thinner_;
};

// Memory of the selected blocks, change by change.
template <typename Visit>
void walk_chosen(const Store& store, const BlockFilter& filter, const Visit& visit) {
  std::vector<std::uint64_t> held(store.devices.size());
  for (std::size_t index = 0; index < store.live_changes.size(); ++index) {
    const LiveChange& change = store.live_changes[index];
    const std::size_t block = change.block.value;
    if (!filter(block)) continue;
    const std::size_t device = store.blocks.device[block];
    held[device] += change.birth ? store.blocks.size[block] : 0 - store.blocks.size[block];
    visit(DeviceTotals{device, change.time_ns, index + 1, held[device], std::nullopt, std::nullopt});
  }
}

// Devices restricted to the selected blocks.
std::vector<DeviceSummary> chosen_devices(const Store& store, const BlockFilter& filter) {
  if (filter.all()) return store.devices;
  std::vector<DeviceSummary> devices;
  for (const DeviceSummary& summary : store.devices) devices.emplace_back().device = summary.device;
  walk_chosen(store, filter, [&](const DeviceTotals& totals) {
    DeviceSummary& summary = devices[totals.device];
    if (totals.allocated_bytes <= summary.peak_allocated_bytes) return;
    summary.peak_allocated_bytes = totals.allocated_bytes;
    summary.peak_allocated_at_ns = totals.time_ns;
  });
  return devices;
}

constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::other) + 1;

std::optional<std::vector<TimelinePhase>> list_phases(const Store& store, const std::vector<PhaseSpan>& spans,
                                                      std::size_t most) {
  const auto time_of = [&](std::uint64_t change) {
    return store.live_changes[std::min<std::uint64_t>(change, store.live_changes.size() - 1)].time_ns;
  };
  std::vector<TimelinePhase> phases;
  if (pass_spans(spans).size() < 2) return phases;  // a single pass is not informative
  for (const PhaseSpan& span : spans) {
    if (span.phase == Phase::other) continue;
    if (phases.size() == most) return std::nullopt;
    phases.push_back({span.phase, time_of(span.from), time_of(span.to)});
  }
  return phases;
}

// Finds the listed call site of a stack; each stack is named once.
class SiteOfStack {
 public:
  SiteOfStack(const std::vector<CallSite>& sites, std::size_t stacks, Symbols& symbols)
      : other_(sites.size()), known_(stacks + 1), symbols_(symbols) {
    for (std::size_t site = 0; site < sites.size(); ++site) sites_.emplace(shown_place(sites[site].stack), site);
  }

  // Returns the number of sites for all other stacks.
  std::size_t operator()(StackId stack) {
    std::optional<std::size_t>& known = known_[std::min<std::size_t>(stack.value, known_.size() - 1)];
    if (!known) {
      const auto site = sites_.find(shown_place(name_stack(symbols_, stack)));
      known = site == sites_.end() ? other_ : site->second;
    }
    return *known;
  }

 private:
  std::map<std::string, std::size_t> sites_;
  std::size_t other_;
  std::vector<std::optional<std::size_t>> known_;  // by stack; blocks without one are last
  Symbols& symbols_;
};

// Fills in the memory of the layers. `layer_of(block)` may be the number of layers, which means all others.
template <typename LayerOf>
void fill_layers(TimelineLayers& split, const Store& store, std::size_t device,
                 const std::vector<TimelinePoint>& points, const BlockFilter& filter, const LayerOf& layer_of) {
  std::vector<std::uint64_t> held(split.layers.size() + 1, 0);  // the last one: of others
  std::uint64_t recorded = 0;
  std::size_t change = 0;
  for (const TimelinePoint& point : points) {
    for (; change < point.change_count; ++change) {
      const LiveChange& live = store.live_changes[change];
      const std::uint32_t block = live.block.value;
      if (store.blocks.device[block] != device || !filter(block)) continue;
      const std::uint64_t size = store.blocks.size[block];
      const std::uint64_t difference = live.birth ? size : 0 - size;
      held[layer_of(block)] += difference;
      recorded += difference;
    }
    for (std::size_t layer = 0; layer < split.layers.size(); ++layer) split.layers[layer].bytes.push_back(held[layer]);
    split.other.push_back(held.back());
    split.unrecorded.push_back(point.allocated_bytes > recorded ? point.allocated_bytes - recorded : 0);
  }
}

Moment highest_of(const TimelineSeries& series, const BlockFilter& filter) {
  if (filter.all()) return {};
  return {Moment::Kind::time, series.peak_allocated_at_ns.value_or(0), 0};
}

// Memory of the selected blocks at the maximum of the series, by stack.
std::vector<StackUsage> usages_when_highest(const Store& store, std::size_t device, const TimelineSeries& series,
                                            const BlockFilter& filter) {
  if (filter.all()) return usages_at_peak(store, device);
  std::unordered_map<StackId, StackUsage> usages;
  for (const BlockId block : held_blocks(store, highest_of(series, filter), device, filter).blocks) {
    StackUsage& usage = usages[store.blocks.stack[block.value]];
    usage.stack = store.blocks.stack[block.value];
    usage.bytes += store.blocks.size[block.value];
    ++usage.blocks;
  }
  std::vector<StackUsage> list;
  list.reserve(usages.size());
  for (const auto& [stack, usage] : usages) list.push_back(usage);
  return list;
}

// The groups that have a layer, the lowest first.
std::vector<std::uint32_t> listed_groups(const Store& store, std::size_t device, const TimelineSeries& series,
                                         OwnerKind by, const OwnerGroups& groups, const BlockFilter& filter,
                                         std::size_t top) {
  const bool all = by == OwnerKind::category || by == OwnerKind::phase;
  std::map<std::uint32_t, std::uint64_t> bytes;
  if (all) {
    for (std::size_t block = 0; block < store.blocks.count(); ++block) {
      if (store.blocks.device[block] == device && filter(block)) bytes[groups.of(block)] = 0;
    }
  } else {
    for (const BlockId block : held_blocks(store, highest_of(series, filter), device, filter).blocks) {
      bytes[groups.of(block.value)] += store.blocks.size[block.value];
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
  sorted.reserve(bytes.size());
  for (const auto& [group, held] : bytes) sorted.emplace_back(held, group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  if (!all && top != 0 && sorted.size() > top) sorted.resize(top);
  std::vector<std::uint32_t> listed;
  listed.reserve(sorted.size());
  for (const auto& [held, group] : sorted) listed.push_back(group);
  return listed;
}

template <typename Add>
void for_each_series(Timeline& timeline, const Store& store, const Add& add) {
  for (TimelineSeries& series : timeline.series) {
    const auto device = std::find_if(store.devices.begin(), store.devices.end(),
                                     [&](const DeviceSummary& summary) { return summary.device == series.device; });
    if (device != store.devices.end()) add(series, static_cast<std::size_t>(device - store.devices.begin()));
  }
}

std::optional<std::uint64_t> sampled_capacity(const Store& store, const Device& device) {
  if (device.type != DeviceType::cuda) return std::nullopt;
  for (const DeviceSeries& series : store.samples.devices) {
    if (series.device.cuda_index == static_cast<std::uint32_t>(device.index)) return series.device.total_bytes;
  }
  return std::nullopt;
}

}  // namespace

Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const std::size_t points = std::max<std::size_t>(options.points, 8);
  const bool all = options.filter.all();
  const std::vector<DeviceSummary> devices = chosen_devices(store, options.filter);
  std::deque<SeriesBuilder> builders;
  std::vector<SeriesBuilder*> builder_of(store.devices.size());
  for (const std::size_t device : *selected) {
    builder_of[device] = &builders.emplace_back(store, devices[device], all, points);
  }
  const auto take = [&](const DeviceTotals& totals) {
    if (builder_of[totals.device] != nullptr) builder_of[totals.device]->take(totals);
  };
  DriverBytes driver(store);
  if (!all) walk_chosen(store, options.filter, take);
  if (all)
    walk_totals(store, [&](const DeviceTotals& totals) {
      take(totals);
      const auto gpu = driver.take(totals);
      if (!gpu) return;
      for (SeriesBuilder& builder : builders) {
        if (builder.device() == *gpu) builder.take_driver(totals, driver.bytes(*gpu));
      }
    });
  Timeline timeline;
  for (SeriesBuilder& builder : builders) {
    timeline.series.push_back(builder.finish(store.end_ns));
    timeline.series.back().capacity_bytes = sampled_capacity(store, timeline.series.back().device);
  }
  for (const OutOfMemory& event : store.out_of_memory) {
    if (std::find(selected->begin(), selected->end(), event.device) == selected->end()) continue;
    timeline.out_of_memory.push_back({event.time_ns, event.requested, store.devices[event.device].device});
  }
  timeline.pauses = store.pauses;
  if (!options.device) timeline.host = host_timeline(store.samples.host, points);
  timeline.recording = describe_recording(store, symbols);
  return timeline;
}

std::size_t step_stride(std::size_t count, std::size_t most) {
  constexpr std::array<std::size_t, 3> kRound = {1, 2, 5};
  most = std::max<std::size_t>(most, 1);
  for (std::size_t power = 1;; power *= 10) {
    for (const std::size_t round : kRound) {
      if ((count + round * power - 1) / (round * power) <= most) return round * power;
    }
  }
}

TimelineBands find_bands(const Store& store, const Attribution& attribution, std::size_t most) {
  TimelineBands bands;
  const TrainingSteps steps = find_training_steps(store);
  const std::size_t stride = step_stride(steps.starts.size(), most);
  for (std::size_t step = 0; step < steps.starts.size(); step += stride) {
    bands.steps.push_back({step, steps.starts[step].time_ns});
  }
  bands.phases = list_phases(store, attribution.phases, most);
  return bands;
}

std::vector<std::optional<Phase>> phase_cells(const TimelineBands& bands, std::uint64_t duration_ns,
                                              std::size_t cells) {
  if (!bands.phases || bands.phases->empty() || bands.phases->size() > cells) return {};
  std::vector<std::optional<Phase>> found;
  found.reserve(cells);
  const double width = static_cast<double>(std::max<std::uint64_t>(duration_ns, 1)) / static_cast<double>(cells);
  auto first = bands.phases->begin();
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double begin = width * static_cast<double>(cell);
    const double end = begin + width;
    std::array<double, kPhases> within{};
    double& nothing = within[static_cast<std::size_t>(Phase::other)];
    nothing = width;
    while (first != bands.phases->end() && static_cast<double>(first->end_ns) <= begin) ++first;
    for (auto phase = first; phase != bands.phases->end() && static_cast<double>(phase->begin_ns) < end; ++phase) {
      const double part =
          std::min(end, static_cast<double>(phase->end_ns)) - std::max(begin, static_cast<double>(phase->begin_ns));
      within[static_cast<std::size_t>(phase->phase)] += part;
      nothing -= part;
    }
    const auto most = std::max_element(within.begin(), within.end()) - within.begin();
    found.push_back(most + 1 == static_cast<std::ptrdiff_t>(kPhases) ? std::nullopt
                                                                     : std::optional(static_cast<Phase>(most)));
  }
  return found;
}

void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top,
                    const BlockFilter& filter) {
  for_each_series(timeline, store, [&](TimelineSeries& series, std::size_t device) {
    std::vector<CallSite> sites = group_by_call_site(usages_when_highest(store, device, series, filter), symbols,
                                                     series.peak_allocated_bytes, top)
                                      .call_sites;
    SiteOfStack site_of(sites, store.definitions.stacks.size(), symbols);
    TimelineLayers split;
    for (CallSite& site : sites) split.layers.push_back({std::move(site.stack), {}, {}});
    fill_layers(split, store, device, series.points, filter,
                [&](std::uint32_t block) { return site_of(store.blocks.stack[block]); });
    series.splits.push_back(std::move(split));
  });
}

void add_owners(Timeline& timeline, const Store& store, OwnerKind by, const OwnerGroups& groups,
                const BlockFilter& filter, std::size_t top) {
  for_each_series(timeline, store, [&](TimelineSeries& series, std::size_t device) {
    TimelineLayers split;
    split.by = by;
    std::unordered_map<std::uint32_t, std::size_t> layer_of;
    for (const std::uint32_t group : listed_groups(store, device, series, by, groups, filter, top)) {
      layer_of.emplace(group, split.layers.size());
      split.layers.push_back({{}, groups.owner(group), {}});
    }
    fill_layers(split, store, device, series.points, filter, [&](std::uint32_t block) {
      const auto found = layer_of.find(groups.of(block));
      return found == layer_of.end() ? split.layers.size() : found->second;
    });
    series.splits.push_back(std::move(split));
  });
}

}  // namespace tidemark
