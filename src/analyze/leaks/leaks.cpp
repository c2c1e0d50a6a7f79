#include "analyze/leaks/leaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze/common/devices.h"
#include "analyze/leaks/leak_list.h"
#include "analyze/steps/lead_in.h"

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

}  // namespace tidemark
