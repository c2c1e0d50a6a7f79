#include "analyze/steps/annotated_steps.h"

#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "analyze/common/annotations.h"
#include "base/step_names.h"

namespace tidemark {
AnnotatedSteps annotated_steps(const Definitions& definitions) {
  std::unordered_map<StringId, StepName> known;
  std::array<AnnotatedSteps, kStepNames> found;
  for (const AnnotatedRange& range : annotated_ranges(definitions)) {
    const auto [entry, is_new] = known.try_emplace(range.name, StepName::other);
    if (is_new && range.name.valid() && range.name.value < definitions.strings.size()) {
      entry->second = step_name_of(definitions.strings[range.name.value]);
    }
    if (entry->second == StepName::other) continue;
    AnnotatedSteps& steps = found[static_cast<std::size_t>(entry->second)];
    if (!steps.name.valid()) steps.name = range.name;
    const bool later = steps.starts_ns.empty() || range.begin_ns > steps.starts_ns.back();
    if (later) steps.starts_ns.push_back(range.begin_ns);
  }
  found[static_cast<std::size_t>(StepName::optimizer)].of_optimizer = true;
  AnnotatedSteps& planned = found[static_cast<std::size_t>(StepName::planned)];
  if (!planned.starts_ns.empty()) return std::move(planned);
  for (AnnotatedSteps& steps : found) {
    if (steps.starts_ns.size() >= kFewestSteps) return std::move(steps);
  }
  return {};
}

}  // namespace tidemark
