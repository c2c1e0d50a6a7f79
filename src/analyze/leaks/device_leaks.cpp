#include "analyze/leaks/device_leaks.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyze/common/stack_names.h"

namespace tidemark {
namespace {

constexpr double kMoreThanSizes = 1.25;

struct DeviceGroups {
  std::vector<LeakGroup> groups;
  std::vector<double> work;  // bytes allocated in each step that were freed in it
};

// One pass over the blocks: births in order, so their step only moves on; deaths are looked up.
class Grouping {
 public:
  Grouping(const Store& store, const TrainingSteps& steps, const BlockFilter& filter)
      : store_(store), starts_(steps.starts), filter_(filter) {}

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
      if (filter_(block))
        group_of(block, result).spans.push_back({boundary, last_boundary(block), bytes, id_of(block)});
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
  static BlockId id_of(std::size_t block) { return {static_cast<std::uint32_t>(block)}; }
  LeakGroup& group_of(std::size_t block, DeviceGroups& result) {
    const StackId stack = store_.blocks.stack[block];
    const std::uint64_t bytes =
        store_.blocks.requested.empty() ? store_.blocks.size[block] : store_.blocks.requested[block];
    auto& index_of = stack.valid() ? by_stack_ : by_size_;
    const auto [entry, is_new] = index_of.try_emplace(stack.valid() ? stack.value : bytes, result.groups.size());
    if (is_new) {
      result.groups.push_back({{stack}, stack.valid() ? std::nullopt : std::optional(bytes), {}});
    }
    return result.groups[entry->second];
  }

  const Store& store_;
  const std::vector<TrainingSteps::Start>& starts_;
  const BlockFilter& filter_;
  std::unordered_map<std::uint64_t, std::size_t> by_stack_;
  std::unordered_map<std::uint64_t, std::size_t> by_size_;
};

bool is_leak(const std::optional<Growth>& growth) {
  return growth && growth->classification == GrowthClass::leak;
}

class DeviceGrowth {
 public:
  DeviceGrowth(DeviceGroups&& groups, std::uint32_t boundaries, std::uint32_t warmup)
      : groups_(std::move(groups)), boundaries_(boundaries), warmup_(warmup) {}

  std::vector<GroupGrowth> run() && {
    std::vector<GroupGrowth> found;
    LeakGroup all_sizes{{StackId{}}, std::nullopt, {}};
    double by_size = 0;
    for (LeakGroup& group : groups_.groups) {
      auto growth = find_retained_growth(group.spans, boundaries_, warmup_);
      if (!growth) growth = find_replacement_growth(group.spans, boundaries_, warmup_, groups_.work);
      if (!has_stack(group)) {
        all_sizes.spans.insert(all_sizes.spans.end(), group.spans.begin(), group.spans.end());
        if (is_leak(growth)) by_size += growth->bytes_per_step.value;
      }
      if (growth) found.push_back({std::move(group), *growth});
    }
    // Without a stack, blocks of varying sizes may belong to one call site: then no single size shows all of its
    // growth.
    const auto growth = find_retained_growth(all_sizes.spans, boundaries_, warmup_);
    if (is_leak(growth) && growth->bytes_per_step.value > kMoreThanSizes * by_size) {
      std::erase_if(found, [](const GroupGrowth& of_size) { return !has_stack(of_size.group); });
      found.push_back({std::move(all_sizes), *growth});
    }
    std::stable_sort(found.begin(), found.end(), [](const GroupGrowth& left, const GroupGrowth& right) {
      return left.growth.bytes_per_step.value > right.growth.bytes_per_step.value;
    });
    return found;
  }

 private:
  static bool has_stack(const LeakGroup& group) { return group.stacks.front().valid(); }

  DeviceGroups groups_;
  std::uint32_t boundaries_;
  std::uint32_t warmup_;
};

/// Puts leaks at one source line together.
class LineJoiner {
 public:
  LineJoiner(Symbols& symbols, std::uint32_t boundaries, std::uint32_t warmup, std::span<const double> work)
      : symbols_(symbols), boundaries_(boundaries), warmup_(warmup), work_(work) {}

  void run(std::vector<GroupGrowth>& found) {
    std::map<Line, std::vector<GroupGrowth*>> by_line;
    for (GroupGrowth& each : found) {
      if (const auto line = line_of(each)) by_line[*line].push_back(&each);
    }
    for (auto& [line, leaks] : by_line) {
      if (leaks.size() > 1) join(leaks);
    }
    std::erase_if(found, [](const GroupGrowth& gone) { return gone.group.stacks.empty(); });
  }

 private:
  using Line = std::tuple<std::string, std::uint32_t, GrowthKind>;  // file, line

  /// Of a leak; none where the line is not known.
  std::optional<Line> line_of(const GroupGrowth& each) {
    if (!is_leak(each.growth)) return std::nullopt;
    const NamedStack stack = name_stack(symbols_, each.group.stacks.front());
    if (stack.frames.empty() || stack.frames[stack.call_site].line == 0) return std::nullopt;
    const FrameName& frame = stack.frames[stack.call_site];
    return Line{frame.file, frame.line, each.growth.kind};
  }

  /// Into the first. Not where all the blocks together are no leak: then each stack stays by itself.
  void join(const std::vector<GroupGrowth*>& leaks) {
    LeakGroup all;
    for (const GroupGrowth* leak : leaks) {
      all.stacks.insert(all.stacks.end(), leak->group.stacks.begin(), leak->group.stacks.end());
      all.spans.insert(all.spans.end(), leak->group.spans.begin(), leak->group.spans.end());
    }
    const bool retained = leaks.front()->growth.kind == GrowthKind::retained;
    const auto growth = retained ? find_retained_growth(all.spans, boundaries_, warmup_)
                                 : find_replacement_growth(all.spans, boundaries_, warmup_, work_);
    if (!is_leak(growth)) return;
    for (GroupGrowth* leak : leaks) leak->group.stacks.clear();
    *leaks.front() = {std::move(all), *growth};
  }

  Symbols& symbols_;
  std::uint32_t boundaries_;
  std::uint32_t warmup_;
  std::span<const double> work_;
};

}  // namespace

std::vector<GroupGrowth> find_device_growth(const Store& store, Symbols& symbols, const TrainingSteps& steps,
                                            std::uint32_t warmup, std::size_t device, const BlockFilter& filter) {
  const auto boundaries = static_cast<std::uint32_t>(steps.starts.size());
  DeviceGroups groups = Grouping(store, steps, filter).run(device);
  const std::vector<double> work = groups.work;
  std::vector<GroupGrowth> found = DeviceGrowth(std::move(groups), boundaries, warmup).run();
  LineJoiner(symbols, boundaries, warmup, work).run(found);
  return found;
}

}  // namespace tidemark
