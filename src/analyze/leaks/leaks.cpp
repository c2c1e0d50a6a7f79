#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/leaks/device_leaks.h"
#include "analyze/steps/training_steps.h"

namespace tidemark {

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

// PyTorch's own functions have names of hooks and caches too: only the project's say something.
MatchedMistake mistake_of(LeakObjectKind kind, const NamedStack& stack) {
  std::vector<std::string> functions;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (is_project_code(*frame)) functions.push_back(frame->function);
  }
  return match_usual_mistake({kind, {}, functions});
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
  tell_rows_apart(leaks_.leaks, &LeakSite::stack);
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
  if (grown.kind == LeakObjectKind::call_site) {
    const LeakObjectKind kind = grown.keeps_graphs ? LeakObjectKind::autograd_graph : grown.kind;
    object.mistake = mistake_of(kind, found.sites.front().stack);
    return found;
  }
  object.last = name_stack(symbols_, grown.last);
  object.mistake = mistake_of(grown.kind, object.last);
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
