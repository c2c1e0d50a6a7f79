#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyze/common/earlier_frees.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/kept_together.h"
#include "analyze/steps/training_steps.h"

namespace tidemark {

namespace {

constexpr double kMoreThanSizes = 1.25;
constexpr std::uint64_t kWarmupShare = 5;  // 1 / 5 of a run without steps: the host grows while libraries are loaded

struct DeviceGroups {
  std::vector<LeakGroup> groups;
  std::vector<double> work;  // bytes allocated in each step that were freed in it
};

// One pass over the blocks: births in order, so their step only moves on; deaths are looked up.
class Grouping {
 public:
  Grouping(const Store& store, const TrainingSteps& steps, const BlockFilter& filter)
      : store_(store), steps_(steps), starts_(steps.starts), filter_(filter) {}

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
    return static_cast<std::uint32_t>(steps_.begun_by(death) - 1);
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
  const TrainingSteps& steps_;
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

/// Puts leaks at one source line together, and growth at that line in the steps in which a leak does not grow: a line
/// can have several stacks, such as those with and without the name of a module.
class LineJoiner {
 public:
  LineJoiner(Symbols& symbols, std::uint32_t boundaries, std::uint32_t warmup, std::span<const double> work)
      : symbols_(symbols), boundaries_(boundaries), warmup_(warmup), work_(work) {}

  void run(std::vector<GroupGrowth>& found) {
    std::map<Line, AtLine> by_line;
    for (GroupGrowth& each : found) {
      const auto line = line_of(each);
      if (line) (is_leak(each.growth) ? by_line[*line].leaks : by_line[*line].others).push_back(&each);
    }
    for (auto& [line, at] : by_line) {
      if (at.leaks.size() > 1) join(at.leaks);
      for (GroupGrowth* other : at.others) {
        if (at.leaks.size() == 1 || (at.leaks.size() > 1 && at.leaks[1]->group.stacks.empty())) {
          fill_gaps(*at.leaks.front(), *other);
        }
      }
    }
    std::erase_if(found, [](const GroupGrowth& gone) { return gone.group.stacks.empty(); });
  }

 private:
  using Line = std::tuple<std::string, std::uint32_t, GrowthKind>;  // file, line
  struct AtLine {
    std::vector<GroupGrowth*> leaks;
    std::vector<GroupGrowth*> others;
  };

  /// Source line of the growth; nullopt if unknown.
  std::optional<Line> line_of(const GroupGrowth& each) {
    const NamedStack stack = name_stack(symbols_, each.group.stacks.front());
    if (stack.frames.empty() || stack.frames[stack.call_site].line == 0) return std::nullopt;
    const FrameName& frame = stack.frames[stack.call_site];
    return Line{frame.file, frame.line, each.growth.kind};
  }

  /// Joins all into the first, unless all the blocks together are no leak: then each stack stays separate.
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

  /// Adds `other` to the leak if the two never grow in the same step.
  void fill_gaps(GroupGrowth& leak, GroupGrowth& other) const {
    if (leak.growth.kind != GrowthKind::retained) return;
    LeakGroup all = leak.group;
    all.stacks.insert(all.stacks.end(), other.group.stacks.begin(), other.group.stacks.end());
    all.spans.insert(all.spans.end(), other.group.spans.begin(), other.group.spans.end());
    const auto growth = find_retained_growth(all.spans, boundaries_, warmup_);
    if (!is_leak(growth) || growth->grown_steps != leak.growth.grown_steps + other.growth.grown_steps) return;
    leak = {std::move(all), *growth};
    other.group.stacks.clear();
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

std::uint64_t grown_bytes(const Growth& growth, std::uint64_t held_bytes) {
  if (growth.kind == GrowthKind::retained) return held_bytes;
  const double grown = growth.bytes_per_step.value * growth.grown_steps;
  return std::min(held_bytes, static_cast<std::uint64_t>(std::llround(std::max(0.0, grown))));
}

std::uint64_t LeakSite::grown_bytes() const {
  return tidemark::grown_bytes(growth, held_bytes);
}

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
  leaks.min_growth = options.min_growth;
  leaks.warmup_steps = options.warmup_steps.value_or(default_warmup(store, count));
  leaks.of_last_part = lead_in_of(store).end_ns != 0;
  leaks.analyzed_steps = analyzed_steps(count, leaks.warmup_steps);
  if (store.devices.empty()) {
    leaks.insufficient = InsufficientData::no_events;
  } else if (leaks.steps.source == TrainingSteps::Source::none) {
    leaks.insufficient = InsufficientData::no_steps;
  } else if (leaks.analyzed_steps < kMinAnalyzedSteps) {
    leaks.insufficient = InsufficientData::too_few_steps;
  } else {
    LeakList list(store, symbols, options, leaks);
    if (auto ready = list.prepare(); !ready) return ready.error();
    for (const std::size_t device : *selected) list.add_device(device);
    list.finish();
  }
  const bool has_steps = leaks.warmup_steps < count;
  leaks.host_growth = has_steps ? find_host_growth(store, leaks.steps.starts[leaks.warmup_steps].time_ns,
                                                   leaks.steps.starts.back().time_ns)
                                : find_host_growth(store, store.end_ns / kWarmupShare, store.end_ns);
  leaks.anchor = name_stack(symbols, leaks.steps.anchor);
  if (leaks.steps.mark.valid()) leaks.mark = store.definitions.strings[leaks.steps.mark.value];
  leaks.recording = describe_recording(store, symbols);
  return leaks;
}

namespace {

void add_up(OwnedGrowth& sum, const OwnedGrowth& part) {
  sum.bytes_per_step += part.bytes_per_step;
  sum.held_bytes += part.held_bytes;
  sum.held_blocks += part.held_blocks;
}

}  // namespace

void GrowthSums::add(std::span<const StepSpan> held, double bytes_per_step) {
  std::unordered_map<std::uint32_t, OwnedGrowth> sums;
  std::uint64_t all = 0;
  for (const StepSpan& span : held) {
    add_up(sums[groups_.of(span.block.value)], {{}, 0, span.bytes, 1});
    all += span.bytes;
  }
  for (auto& [group, sum] : sums) {
    if (all != 0) sum.bytes_per_step = bytes_per_step * static_cast<double>(sum.held_bytes) / static_cast<double>(all);
    add_up(sums_[group], sum);
  }
}

GrowthByOwner GrowthSums::finish(OwnerKind kind, std::size_t top) const {
  std::vector<std::pair<std::uint32_t, OwnedGrowth>> sorted(sums_.begin(), sums_.end());
  std::ranges::sort(sorted, [](const auto& left, const auto& right) {
    const auto key = [](const OwnedGrowth& sum) { return std::pair(std::llround(sum.bytes_per_step), sum.held_bytes); };
    return key(left.second) != key(right.second) ? key(left.second) > key(right.second) : left.first < right.first;
  });
  GrowthByOwner result;
  result.kind = kind;
  result.other.owner.kind = kind;
  for (auto& [group, sum] : sorted) {
    if (top != 0 && result.rows.size() == top) {
      ++result.other_rows;
      add_up(result.other, sum);
      continue;
    }
    sum.owner = groups_.owner(group);
    result.rows.push_back(std::move(sum));
  }
  return result;
}

namespace {

/// The innermost frame of the project that all the stacks have.
std::optional<FrameName> common_caller(Symbols& symbols, const std::vector<StackId>& stacks) {
  std::optional<std::vector<LocationId>> common;
  for (const StackId stack : stacks) {
    const std::vector<LocationId> frames = symbols.frames(stack);
    if (!common) common = frames;
    const auto differs = std::ranges::mismatch(*common, frames);
    common->erase(differs.in1, common->end());
  }
  for (std::size_t depth = common ? common->size() : 0; depth-- > 0;) {
    const FrameName& frame = symbols.name((*common)[depth]);
    if (is_project_code(frame)) return frame;
  }
  return std::nullopt;
}

// PyTorch's own functions also have names of hooks and caches: only the project's functions count.
MatchedMistake mistake_of(bool keeps_graphs, bool ends_in_scalar, const NamedStack& stack) {
  std::vector<std::string> functions;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (is_project_code(*frame)) functions.push_back(frame->function);
  }
  return match_usual_mistake({keeps_graphs, {}, functions, ends_in_scalar});
}

constexpr auto kRate = [](const auto& leak) { return leak.growth.bytes_per_step.value; };

template <typename T>
void keep_first(std::vector<T>& list, std::size_t top) {
  if (top != 0 && list.size() > top) list.resize(top);
}

}  // namespace

Result<void> LeakList::prepare() {
  if (options_.attribution == nullptr) return {};
  if (options_.by) {
    auto groups = OwnerGroups::create(store_, *options_.attribution, *options_.by);
    if (!groups) return groups.error();
    by_ = std::move(*groups);
  }
  for (const OwnerKind kind : {OwnerKind::category, OwnerKind::layer}) {
    auto groups = OwnerGroups::create(store_, *options_.attribution, kind);
    if (groups) parts_.emplace_back(kind, std::move(*groups));
  }
  return {};
}

void LeakList::add_device(std::size_t device) {
  std::vector<GroupGrowth> leaking;
  for (GroupGrowth& growth :
       find_device_growth(store_, symbols_, leaks_.steps, leaks_.warmup_steps, device, options_.filter)) {
    if (growth.growth.classification == GrowthClass::leak) {
      leaking.push_back(std::move(growth));
    } else {
      leaks_.non_leak_growth.push_back(site_of(growth, device));
    }
  }
  std::optional<GrowthSums> by;
  if (by_) by.emplace(*by_);
  for (const GrownObject& grown :
       join_leaks(store_, options_.attribution, device, boundaries(), leaks_.warmup_steps, std::move(leaking))) {
    Found found = describe(grown, device);
    if (is_above_floor(found.object, device)) {
      if (by) by->add(held_spans(grown), grown.growth.bytes_per_step.value);
      found_.push_back(std::move(found));
    } else {
      std::ranges::move(found.sites, std::back_inserter(leaks_.small_leaks));
    }
  }
  if (by) leaks_.owners.push_back({store_.devices[device].device, by->finish(*options_.by, options_.top)});
  list_kept(device);
}

void LeakList::list_kept(std::size_t device) {
  for (const KeptTogether& kept :
       find_kept_together(store_, leaks_.steps, device, options_.attribution, options_.filter)) {
    const auto [bytes, blocks] = most_at_once(store_, kept.blocks);
    if (!is_worth_advice(bytes, store_.devices[device].peak_allocated_bytes)) continue;
    leaks_.kept_over_steps.push_back(
        {store_.devices[device].device, name_stack(symbols_, kept.stack), kept.steps, kept.times, bytes, blocks});
  }
}

void LeakList::finish() {
  list_found();
  std::ranges::stable_sort(leaks_.small_leaks, std::greater<>(), kRate);
  leaks_.small_leak_count = leaks_.small_leaks.size();
  for (const LeakSite& site : leaks_.small_leaks) leaks_.small_bytes_per_step += kRate(site);
  keep_first(leaks_.small_leaks, options_.top);
  std::ranges::stable_sort(leaks_.non_leak_growth, std::greater<>(), &LeakSite::held_bytes);
  leaks_.non_leak_growth_count = leaks_.non_leak_growth.size();
  keep_first(leaks_.non_leak_growth, options_.top);
  std::ranges::stable_sort(leaks_.kept_over_steps, std::greater<>(), &KeptSite::bytes);
  leaks_.kept_over_steps_count = leaks_.kept_over_steps.size();
  keep_first(leaks_.kept_over_steps, options_.top);
  tell_rows_apart(leaks_.leaks, &LeakSite::stack);
  tell_rows_apart(leaks_.kept_over_steps, &KeptSite::stack);
  tell_rows_apart(leaks_.non_leak_growth, &LeakSite::stack);
  leaks_.verdict = leaks_.leak_count != 0 ? LeakVerdict::leak : LeakVerdict::no_leak;
}

void LeakList::list_found() {
  std::ranges::stable_sort(found_, std::greater<>(), [](const Found& found) { return kRate(found.object); });
  leaks_.object_count = found_.size();
  for (const Found& found : found_) {
    leaks_.leak_count += found.sites.size();
    leaks_.bytes_per_step += kRate(found.object);
  }
  keep_first(found_, options_.top);
  for (Found& found : found_) {
    keep_first(found.sites, options_.top);
    for (LeakSite& site : found.sites) {
      site.object = leaks_.objects.size();
      leaks_.leaks.push_back(std::move(site));
    }
    leaks_.objects.push_back(std::move(found.object));
  }
  std::ranges::stable_sort(leaks_.leaks, std::greater<>(), kRate);
}

LeakSite LeakList::site_of(const GroupGrowth& leak, std::size_t device) const {
  LeakSite site;
  site.device = store_.devices[device].device;
  site.stack_ids = leak.group.stacks;
  site.stack = name_stack(symbols_, site.stack_ids.front());
  share_modules(site.stack, symbols_, site.stack_ids);
  site.requested_bytes = leak.group.requested_bytes;
  site.growth = leak.growth;
  for (const StepSpan& span : leak.group.spans) {
    if (!span.is_held(boundaries(), leaks_.warmup_steps)) continue;
    site.held_bytes += span.bytes;
    ++site.held_blocks;
  }
  site.first_step_ns = leaks_.steps.starts[leak.growth.first_step].time_ns;
  site.last_step_ns = leaks_.steps.starts[leak.growth.last_step].time_ns;
  return site;
}

LeakList::Found LeakList::describe(const GrownObject& grown, std::size_t device) const {
  Found found;
  LeakObject& object = found.object;
  object.kind = grown.kind;
  object.device = store_.devices[device].device;
  object.growth = grown.growth;
  object.perhaps_input = grown.perhaps_input;
  object.leaks = grown.leaks.size();
  object.first_step_ns = leaks_.steps.starts[grown.growth.first_step].time_ns;
  object.last_step_ns = leaks_.steps.starts[grown.growth.last_step].time_ns;
  for (const GroupGrowth& leak : grown.leaks) {
    const LeakSite& site = found.sites.emplace_back(site_of(leak, device));
    object.held_bytes += site.held_bytes;
    object.held_blocks += site.held_blocks;
  }
  object.keeps_graphs = grown.keeps_graphs;
  if (grown.kind == LeakObjectKind::call_site) {
    object.mistake = mistake_of(grown.keeps_graphs, grown.ends_in_scalar, found.sites.front().stack);
    return found;
  }
  object.last = name_stack(symbols_, grown.last);
  object.ends_in_scalar = grown.ends_in_scalar;
  object.mistake = mistake_of(grown.keeps_graphs, grown.ends_in_scalar, object.last);
  object.caller = common_caller(symbols_, grown.forward_stacks);
  object.owners = owners_of(grown);
  return found;
}

bool LeakList::is_above_floor(const LeakObject& object, std::size_t device) const {
  if (options_.min_growth) return kRate(object) >= static_cast<double>(*options_.min_growth);
  const auto peak = static_cast<double>(store_.devices[device].peak_allocated_bytes);
  return kRate(object) >= static_cast<double>(kLeakFloorPerStep) ||
         static_cast<double>(grown_bytes(object.growth, object.held_bytes)) >= kLeakFloorOfPeak * peak;
}

std::vector<StepSpan> LeakList::held_spans(const GrownObject& grown) const {
  std::vector<StepSpan> held;
  for (const GroupGrowth& leak : grown.leaks) {
    std::ranges::copy_if(leak.group.spans, std::back_inserter(held),
                         [&](const StepSpan& span) { return span.is_held(boundaries(), leaks_.warmup_steps); });
  }
  return held;
}

std::vector<GrowthByOwner> LeakList::owners_of(const GrownObject& grown) const {
  const std::vector<StepSpan> held = held_spans(grown);
  std::vector<GrowthByOwner> owners;
  for (const auto& [kind, groups] : parts_) {
    GrowthSums sums(groups);
    sums.add(held, grown.growth.bytes_per_step.value);
    owners.push_back(sums.finish(kind, options_.top));
  }
  return owners;
}

}  // namespace tidemark
