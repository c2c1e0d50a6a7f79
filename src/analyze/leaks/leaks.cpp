#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "analyze/common/devices.h"
#include "analyze/common/moment.h"
#include "analyze/leaks/device_leaks.h"

namespace tidemark {
namespace {

LeakSite site_of(const GroupGrowth& group_growth, const TrainingSteps& steps, std::uint32_t warmup, Device device,
                 Symbols& symbols) {
  LeakSite site;
  site.device = device;
  site.stack_ids = group_growth.group.stacks;
  site.stack = name_stack(symbols, site.stack_ids.front());
  site.requested_bytes = group_growth.group.requested_bytes;
  site.growth = group_growth.growth;
  for (const StepSpan& span : group_growth.group.spans) {
    if (span.first <= warmup || span.last + 1 != steps.starts.size()) continue;
    site.held_bytes += span.bytes;
    ++site.held_blocks;
  }
  site.first_step_ns = steps.starts[group_growth.growth.first_step].time_ns;
  site.last_step_ns = steps.starts[group_growth.growth.last_step].time_ns;
  return site;
}

bool is_above_floor(const LeakSite& site, std::uint64_t peak_bytes, std::optional<std::uint64_t> min_growth) {
  const double rate = site.growth.bytes_per_step.value;
  if (min_growth) return rate >= static_cast<double>(*min_growth);
  return rate >= static_cast<double>(kLeakFloorPerStep) ||
         static_cast<double>(site.grown_bytes()) >= kLeakFloorOfPeak * static_cast<double>(peak_bytes);
}

void analyze_device(const Store& store, Symbols& symbols, std::size_t device, const BlockFilter& filter, Leaks& leaks) {
  const DeviceSummary& totals = store.devices[device];
  for (const GroupGrowth& group_growth :
       find_device_growth(store, symbols, leaks.steps, leaks.warmup_steps, device, filter)) {
    LeakSite site = site_of(group_growth, leaks.steps, leaks.warmup_steps, totals.device, symbols);
    if (group_growth.growth.classification != GrowthClass::leak) {
      leaks.non_leak_growth.push_back(std::move(site));
    } else if (is_above_floor(site, totals.peak_allocated_bytes, leaks.min_growth)) {
      leaks.leaks.push_back(std::move(site));
    } else {
      leaks.small_leaks.push_back(std::move(site));
    }
  }
}

/// Sorts, adds up and cuts.
void finish_list(std::vector<LeakSite>& sites, std::size_t top, std::uint64_t& count, double& bytes_per_step) {
  std::stable_sort(sites.begin(), sites.end(), [](const LeakSite& left, const LeakSite& right) {
    return left.growth.bytes_per_step.value > right.growth.bytes_per_step.value;
  });
  count = sites.size();
  for (const LeakSite& site : sites) bytes_per_step += site.growth.bytes_per_step.value;
  if (top != 0 && sites.size() > top) sites.resize(top);
}

void finish_lists(Leaks& leaks, std::size_t top) {
  finish_list(leaks.leaks, top, leaks.leak_count, leaks.bytes_per_step);
  finish_list(leaks.small_leaks, top, leaks.small_leak_count, leaks.small_bytes_per_step);
  std::stable_sort(leaks.non_leak_growth.begin(), leaks.non_leak_growth.end(),
                   [](const LeakSite& left, const LeakSite& right) { return left.held_bytes > right.held_bytes; });
  leaks.non_leak_growth_count = leaks.non_leak_growth.size();
  if (top != 0 && leaks.non_leak_growth.size() > top) leaks.non_leak_growth.resize(top);
  tell_rows_apart(leaks.leaks, &LeakSite::stack);
  tell_rows_apart(leaks.non_leak_growth, &LeakSite::stack);
}

std::uint32_t default_warmup(std::size_t steps) {
  return std::max<std::uint32_t>(2, static_cast<std::uint32_t>(steps / 10));
}

}  // namespace

std::uint64_t LeakSite::grown_bytes() const {
  if (growth.kind == GrowthKind::retained) return held_bytes;
  const double grown = growth.bytes_per_step.value * growth.grown_steps;
  return std::min(held_bytes, static_cast<std::uint64_t>(std::llround(std::max(0.0, grown))));
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
  leaks.warmup_steps = options.warmup_steps.value_or(default_warmup(count));
  leaks.analyzed_steps = analyzed_steps(count, leaks.warmup_steps);
  if (store.devices.empty()) {
    leaks.insufficient = InsufficientData::no_events;
  } else if (leaks.steps.source == TrainingSteps::Source::none) {
    leaks.insufficient = InsufficientData::no_steps;
  } else if (leaks.analyzed_steps < kMinAnalyzedSteps) {
    leaks.insufficient = InsufficientData::too_few_steps;
  } else {
    for (const std::size_t device : *selected) analyze_device(store, symbols, device, options.filter, leaks);
    finish_lists(leaks, options.top);
    leaks.verdict = leaks.leak_count != 0 ? LeakVerdict::leak : LeakVerdict::no_leak;
  }
  leaks.anchor = name_stack(symbols, leaks.steps.anchor);
  if (leaks.steps.mark.valid()) leaks.mark = store.definitions.strings[leaks.steps.mark.value];
  leaks.recording = describe_recording(store, symbols);
  return leaks;
}

}  // namespace tidemark
