#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "analyze/common/moment.h"

namespace tidemark {
namespace {

constexpr double kMoreThanSizes = 1.25;

// The blocks of a stack, or of a size without a stack, that were alive at some boundary.
struct Group {
  StackId stack;
  std::optional<std::uint64_t> requested_bytes;
  std::vector<Stay> stays;
};

struct DeviceGroups {
  std::vector<Group> groups;
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
      group_of(block, result).stays.push_back({boundary, last_boundary(block), bytes});
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
  Group& group_of(std::size_t block, DeviceGroups& result) {
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

struct Judged {
  const Group* group = nullptr;
  Growth growth;
};

class DeviceJudge {
 public:
  DeviceJudge(const DeviceGroups& groups, std::uint32_t boundaries, std::uint32_t warmup)
      : groups_(groups), boundaries_(boundaries), warmup_(warmup) {}

  std::vector<Judged> run() {
    std::vector<Judged> judged;
    double by_size = 0;
    for (const Group& group : groups_.groups) {
      auto growth = judge_kept(group.stays, boundaries_, warmup_);
      if (!growth) growth = judge_replaced(group.stays, boundaries_, warmup_, groups_.work);
      if (growth) judged.push_back({&group, *growth});
      if (group.stack.valid()) continue;
      all_sizes_.stays.insert(all_sizes_.stays.end(), group.stays.begin(), group.stays.end());
      if (growth && growth->finding == GrowthFinding::leak) by_size += growth->bytes_per_step.value;
    }
    // Without a stack, blocks of varying sizes may be of one place: then no single size shows all of it.
    const auto growth = judge_kept(all_sizes_.stays, boundaries_, warmup_);
    if (growth && growth->finding == GrowthFinding::leak && growth->bytes_per_step.value > kMoreThanSizes * by_size) {
      std::erase_if(judged, [](const Judged& of_size) { return !of_size.group->stack.valid(); });
      judged.push_back({&all_sizes_, *growth});
    }
    return judged;
  }

 private:
  const DeviceGroups& groups_;
  std::uint32_t boundaries_;
  std::uint32_t warmup_;
  Group all_sizes_;
};

LeakPlace place_of(const Judged& judged, const TrainingSteps& steps, std::uint32_t warmup, Device device,
                   Symbols& symbols) {
  LeakPlace place;
  place.device = device;
  place.stack_id = judged.group->stack;
  place.stack = name_stack(symbols, judged.group->stack);
  place.requested_bytes = judged.group->requested_bytes;
  place.growth = judged.growth;
  for (const Stay& stay : judged.group->stays) {
    if (stay.first <= warmup || stay.last + 1 != steps.starts.size()) continue;
    place.held_bytes += stay.bytes;
    ++place.held_blocks;
  }
  place.first_step_ns = steps.starts[judged.growth.first_step].time_ns;
  place.last_step_ns = steps.starts[judged.growth.last_step].time_ns;
  return place;
}

void judge_device(const Store& store, Symbols& symbols, std::size_t device, Leaks& leaks) {
  const DeviceGroups groups = Grouping(store, leaks.steps).run(device);
  DeviceJudge judge(groups, static_cast<std::uint32_t>(leaks.steps.starts.size()), leaks.warmup_steps);
  for (const Judged& judged : judge.run()) {
    const bool leak = judged.growth.finding == GrowthFinding::leak;
    (leak ? leaks.leaks : leaks.growths)
        .push_back(place_of(judged, leaks.steps, leaks.warmup_steps, store.devices[device].device, symbols));
  }
}

void sort_and_cut(Leaks& leaks, std::size_t top) {
  std::stable_sort(leaks.leaks.begin(), leaks.leaks.end(), [](const LeakPlace& left, const LeakPlace& right) {
    return left.growth.bytes_per_step.value > right.growth.bytes_per_step.value;
  });
  std::stable_sort(leaks.growths.begin(), leaks.growths.end(),
                   [](const LeakPlace& left, const LeakPlace& right) { return left.held_bytes > right.held_bytes; });
  leaks.leak_count = leaks.leaks.size();
  leaks.growth_count = leaks.growths.size();
  for (const LeakPlace& place : leaks.leaks) leaks.bytes_per_step += place.growth.bytes_per_step.value;
  if (top != 0 && leaks.leaks.size() > top) leaks.leaks.resize(top);
  if (top != 0 && leaks.growths.size() > top) leaks.growths.resize(top);
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
    return Error{fmt::format("{}: starts of steps must increase", store.path)};
  }
  Leaks leaks;
  leaks.steps = given.empty() ? find_training_steps(store) : given_training_steps(store, given);
  const auto count = static_cast<std::uint32_t>(leaks.steps.starts.size());
  leaks.warmup_steps = options.warmup_steps.value_or(default_warmup(count));
  leaks.judged_steps = judged_steps(count, leaks.warmup_steps);
  if (store.devices.empty()) {
    leaks.doubt = LeakDoubt::no_events;
  } else if (leaks.steps.source == TrainingSteps::Source::none) {
    leaks.doubt = LeakDoubt::no_steps;
  } else if (leaks.judged_steps < kFewestJudgedSteps) {
    leaks.doubt = LeakDoubt::too_few_steps;
  } else {
    for (const std::size_t device : *selected) judge_device(store, symbols, device, leaks);
    sort_and_cut(leaks, options.top);
    leaks.verdict = leaks.leak_count != 0 ? LeakVerdict::leak : LeakVerdict::no_leak;
  }
  leaks.anchor = name_stack(symbols, leaks.steps.anchor);
  if (leaks.steps.mark.valid()) leaks.mark = store.definitions.strings[leaks.steps.mark.value];
  leaks.recording = describe_recording(store, symbols);
  return leaks;
}

}  // namespace tidemark
