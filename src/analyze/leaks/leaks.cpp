#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "analyze/common/devices.h"

namespace tidemark {
namespace {

constexpr double kMoreThanSizes = 1.25;

// The blocks of a stack, or of a size without a stack, that were alive at some boundary.
struct LeakGroup {
  StackId stack;
  std::optional<std::uint64_t> requested_bytes;
  std::vector<StepSpan> spans;
};

struct DeviceGroups {
  std::vector<LeakGroup> groups;
  std::vector<double> work;  // bytes allocated in each step that were freed in it
};

// One pass over the blocks: births in order, so their step only moves on; deaths are looked up.
class Grouping {
 public:
  Grouping(const Store& store, const TrainingSteps& steps) : store_(store), starts_(steps.starts) {}

  DeviceGroups run(std::size_t device) {
    DeviceGroups result;
    result.work.resize(starts_.size());
    std::uint32_t boundary = 0;  // the first one after the birth
    for (std::size_t block = 0; block < store_.blocks.count(); ++block) {
      const std::uint32_t birth = store_.blocks.birth_change[block];
      while (boundary < starts_.size() && starts_[boundary].event_count <= birth) ++boundary;
      if (boundary == starts_.size()) break;
      if (store_.blocks.device[block] != device) continue;
      const std::uint64_t bytes = store_.blocks.size[block];
      if (!store_.blocks.alive(block, starts_[boundary].event_count)) {
        if (boundary != 0) result.work[boundary - 1] += static_cast<double>(bytes);
        continue;
      }
      group_of(block, result).spans.push_back({boundary, last_boundary(block), bytes});
    }
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t last_boundary(std::size_t block) const {
    const std::uint32_t death = store_.blocks.death_change[block];
    if (death == Blocks::kAlive) return static_cast<std::uint32_t>(starts_.size() - 1);
    const auto after = std::upper_bound(
        starts_.begin(), starts_.end(), death,
        [](std::uint32_t event, const TrainingSteps::Start& start) { return event < start.event_count; });
    return static_cast<std::uint32_t>(after - starts_.begin() - 1);
  }
  LeakGroup& group_of(std::size_t block, DeviceGroups& result) {
    const StackId stack = store_.blocks.stack[block];
    const std::uint64_t bytes =
        store_.blocks.requested.empty() ? store_.blocks.size[block] : store_.blocks.requested[block];
    auto& index_of = stack.valid() ? by_stack_ : by_size_;
    const auto [entry, is_new] = index_of.try_emplace(stack.valid() ? stack.value : bytes, result.groups.size());
    if (is_new) {
      result.groups.push_back({stack, stack.valid() ? std::nullopt : std::optional(bytes), {}});
    }
    return result.groups[entry->second];
  }

  const Store& store_;
  const std::vector<TrainingSteps::Start>& starts_;
  std::unordered_map<std::uint64_t, std::size_t> by_stack_;
  std::unordered_map<std::uint64_t, std::size_t> by_size_;
};

struct GroupGrowth {
  const LeakGroup* group = nullptr;
  Growth growth;
};

class DeviceGrowth {
 public:
  DeviceGrowth(const DeviceGroups& groups, std::uint32_t boundaries, std::uint32_t warmup)
      : groups_(groups), boundaries_(boundaries), warmup_(warmup) {}

  std::vector<GroupGrowth> run() {
    std::vector<GroupGrowth> group_growth;
    double by_size = 0;
    for (const LeakGroup& group : groups_.groups) {
      auto growth = find_retained_growth(group.spans, boundaries_, warmup_);
      if (!growth) growth = find_replacement_growth(group.spans, boundaries_, warmup_, groups_.work);
      if (growth) group_growth.push_back({&group, *growth});
      if (group.stack.valid()) continue;
      all_sizes_.spans.insert(all_sizes_.spans.end(), group.spans.begin(), group.spans.end());
      if (growth && growth->classification == GrowthClass::leak) by_size += growth->bytes_per_step.value;
    }
    // Without a stack, blocks of varying sizes may belong to one call site: then no single size shows all of its
    // growth.
    const auto growth = find_retained_growth(all_sizes_.spans, boundaries_, warmup_);
    if (growth && growth->classification == GrowthClass::leak &&
        growth->bytes_per_step.value > kMoreThanSizes * by_size) {
      std::erase_if(group_growth, [](const GroupGrowth& of_size) { return !of_size.group->stack.valid(); });
      group_growth.push_back({&all_sizes_, *growth});
    }
    return group_growth;
  }

 private:
  const DeviceGroups& groups_;
  std::uint32_t boundaries_;
  std::uint32_t warmup_;
  LeakGroup all_sizes_;
};

LeakSite site_of(const GroupGrowth& group_growth, const TrainingSteps& steps, std::uint32_t warmup, Device device,
                 Symbols& symbols) {
  LeakSite site;
  site.device = device;
  site.stack_id = group_growth.group->stack;
  site.stack = name_stack(symbols, group_growth.group->stack);
  site.requested_bytes = group_growth.group->requested_bytes;
  site.growth = group_growth.growth;
  for (const StepSpan& span : group_growth.group->spans) {
    if (span.first <= warmup || span.last + 1 != steps.starts.size()) continue;
    site.held_bytes += span.bytes;
    ++site.held_blocks;
  }
  site.first_step_ns = steps.starts[group_growth.growth.first_step].time_ns;
  site.last_step_ns = steps.starts[group_growth.growth.last_step].time_ns;
  return site;
}

void analyze_device(const Store& store, Symbols& symbols, std::size_t device, Leaks& leaks) {
  const DeviceGroups groups = Grouping(store, leaks.steps).run(device);
  DeviceGrowth growth(groups, static_cast<std::uint32_t>(leaks.steps.starts.size()), leaks.warmup_steps);
  for (const GroupGrowth& group_growth : growth.run()) {
    const bool leak = group_growth.growth.classification == GrowthClass::leak;
    (leak ? leaks.leaks : leaks.non_leak_growth)
        .push_back(site_of(group_growth, leaks.steps, leaks.warmup_steps, store.devices[device].device, symbols));
  }
}

void sort_and_cut(Leaks& leaks, std::size_t top) {
  std::stable_sort(leaks.leaks.begin(), leaks.leaks.end(), [](const LeakSite& left, const LeakSite& right) {
    return left.growth.bytes_per_step.value > right.growth.bytes_per_step.value;
  });
  std::stable_sort(leaks.non_leak_growth.begin(), leaks.non_leak_growth.end(),
                   [](const LeakSite& left, const LeakSite& right) { return left.held_bytes > right.held_bytes; });
  leaks.leak_count = leaks.leaks.size();
  leaks.non_leak_growth_count = leaks.non_leak_growth.size();
  for (const LeakSite& site : leaks.leaks) leaks.bytes_per_step += site.growth.bytes_per_step.value;
  if (top != 0 && leaks.leaks.size() > top) leaks.leaks.resize(top);
  if (top != 0 && leaks.non_leak_growth.size() > top) leaks.non_leak_growth.resize(top);
  tell_rows_apart(leaks.leaks, &LeakSite::stack);
  tell_rows_apart(leaks.non_leak_growth, &LeakSite::stack);
}

std::uint32_t default_warmup(std::size_t steps) {
  return std::max<std::uint32_t>(2, static_cast<std::uint32_t>(steps / 10));
}

}  // namespace

Result<Leaks> analyze_leaks(const Store& store, Symbols& symbols, const LeakOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const auto& given = options.step_starts_ns;
  if (std::adjacent_find(given.begin(), given.end(), std::greater_equal<>()) != given.end()) {
    return Error{fmt::format("{}: start times of steps must increase", store.path)};
  }
  Leaks leaks;
  leaks.steps = given.empty() ? find_training_steps(store) : given_training_steps(store, given);
  const auto count = static_cast<std::uint32_t>(leaks.steps.starts.size());
  leaks.warmup_steps = options.warmup_steps.value_or(default_warmup(count));
  leaks.analyzed_steps = analyzed_steps(count, leaks.warmup_steps);
  if (store.devices.empty()) {
    leaks.insufficient = InsufficientData::no_events;
  } else if (leaks.steps.source == TrainingSteps::Source::none) {
    leaks.insufficient = InsufficientData::no_steps;
  } else if (leaks.analyzed_steps < kMinAnalyzedSteps) {
    leaks.insufficient = InsufficientData::too_few_steps;
  } else {
    for (const std::size_t device : *selected) analyze_device(store, symbols, device, leaks);
    sort_and_cut(leaks, options.top);
    leaks.verdict = leaks.leak_count != 0 ? LeakVerdict::leak : LeakVerdict::no_leak;
  }
  leaks.anchor = name_stack(symbols, leaks.steps.anchor);
  if (leaks.steps.mark.valid()) leaks.mark = store.definitions.strings[leaks.steps.mark.value];
  leaks.recording = describe_recording(store, symbols);
  return leaks;
}

}  // namespace tidemark
