// Autograd graphs that are kept over steps, such as by losses in a list.
#include <algorithm>
#include <utility>

#include "analyze/advice/rules.h"
#include "analyze/leaks/leaks.h"
#include "analyze/leaks/objects.h"

namespace tidemark::advice {

// As if each were freed when its step ends.
std::vector<EarlierFree> retained_graph(const Subject& subject) {
  const TrainingSteps& steps = subject.steps;
  const auto boundaries = static_cast<std::uint32_t>(steps.starts.size());
  const std::uint32_t warmup = default_warmup(subject.store, boundaries);
  if (analyzed_steps(boundaries, warmup) < kMinAnalyzedSteps) return {};
  std::vector<GroupGrowth> leaks = find_device_growth(subject.store, subject.symbols, steps, warmup, subject.device);
  std::erase_if(leaks, [](const GroupGrowth& leak) { return leak.growth.classification != GrowthClass::leak; });
  std::vector<EarlierFree> frees;
  for (const GrownObject& object :
       join_leaks(subject.store, &subject.attribution, subject.device, boundaries, warmup, std::move(leaks))) {
    if (object.kind != LeakObjectKind::autograd_graph) continue;
    for (const GroupGrowth& leak : object.leaks) {
      for (const StepSpan& span : leak.group.spans) {
        if (!span.is_held(boundaries, 0)) continue;
        const EarlierFree life = never_there(subject.store, span.block);
        frees.push_back({span.block, steps.starts[span.first].event_count, life.to});
      }
    }
  }
  return frees;
}

}  // namespace tidemark::advice
