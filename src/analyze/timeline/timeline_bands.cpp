#include "analyze/timeline/timeline_bands.h"

#include <algorithm>
#include <array>

#include "analyze/attribution/phase_runs.h"
#include "analyze/steps/training_steps.h"

namespace tidemark {
namespace {

constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::other) + 1;

std::optional<std::vector<TimelinePhase>> list_phases(const Store& store, const std::vector<PhaseSpan>& spans,
                                                      std::size_t most) {
  const auto time_of = [&](std::uint64_t change) {
    return store.live_changes[std::min<std::uint64_t>(change, store.live_changes.size() - 1)].time_ns;
  };
  std::vector<TimelinePhase> phases;
  if (pass_spans(spans).size() < 2) return phases;  // one alone says nothing of the program
  for (const PhaseSpan& span : spans) {
    if (span.phase == Phase::other) continue;
    if (phases.size() == most) return std::nullopt;
    phases.push_back({span.phase, time_of(span.from), time_of(span.to)});
  }
  return phases;
}

}  // namespace

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

}  // namespace tidemark
