#include "report/plot/bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/timeline/timeline.h"
#include "base/units.h"
#include "report/plot/palette.h"

namespace tidemark {
namespace {

constexpr double kStrip = 16;
constexpr double kGapBelow = 4;
constexpr std::size_t kMaxSteps = 32;      // that have room for their numbers
constexpr std::size_t kPhaseCells = 400;   // of the width
constexpr double kWidthOfLetter = 0.0075;  // of a plot as wide as a page

constexpr Role role_of_phase(Phase phase) {
  return static_cast<Role>(static_cast<std::size_t>(Role::data_phase) + static_cast<std::size_t>(phase));
}
static_assert(role_of_phase(Phase::optimizer) == Role::optimizer_phase);

bool shows_phases(const TimelineBands& bands) {
  return bands.phases && !bands.phases->empty() && bands.phases->size() <= kPhaseCells;
}

// "12" where there is room for it.
std::vector<std::string> fitting_number(std::uint64_t number, double width) {
  std::string words = std::to_string(number);
  if ((static_cast<double>(words.size()) + 1) * kWidthOfLetter > width) return {};
  return {std::move(words)};
}

void add_steps(TimePlot& time, const std::vector<TimelineStep>& steps, std::uint64_t duration_ns, double top) {
  const std::size_t stride = step_stride(steps.size(), kMaxSteps);
  bool even = true;
  for (std::size_t index = 0; index < steps.size(); index += stride, even = !even) {
    const TimelineStep& step = steps[index];
    const bool last = index + stride >= steps.size();
    const std::uint64_t end_ns = last ? duration_ns : steps[index + stride].begin_ns;
    PlotBox box;
    box.role = even ? Role::even_step : Role::odd_step;
    box.y = top;
    box.height = kStrip;
    std::string words = fmt::format("step {}", step.number);
    if (!last && steps[index + stride].number > step.number + 1) {
      words = fmt::format("steps {} to {}", step.number, steps[index + stride].number - 1);
    }
    box.tooltip = {last ? fmt::format("from step {} on", step.number) : std::move(words),
                   "begins at " + format_duration_ns(step.begin_ns)};
    const double width = static_cast<double>(end_ns - std::min(step.begin_ns, end_ns)) /
                         static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
    box.label = fitting_number(step.number, width);
    time.add_box(std::move(box), step.begin_ns, std::max(end_ns, step.begin_ns));
  }
}

// Neighbouring cells of one phase are one box.
void add_phases(TimePlot& time, const std::vector<std::optional<Phase>>& cells, std::uint64_t duration_ns, double top) {
  const double width = static_cast<double>(duration_ns) / static_cast<double>(cells.size());
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t end = first + 1;
    while (end < cells.size() && cells[end] == cells[first]) ++end;
    if (cells[first]) {
      PlotBox box;
      box.role = role_of_phase(*cells[first]);
      box.y = top;
      box.height = kStrip;
      box.tooltip = {std::string(name_in(kPhaseNames, *cells[first]))};
      time.add_box(std::move(box), static_cast<std::uint64_t>(width * static_cast<double>(first)),
                   static_cast<std::uint64_t>(width * static_cast<double>(end)));
    }
    first = end;
  }
  for (const EnumName<Phase>& phase : kPhaseNames) {
    if (std::find(cells.begin(), cells.end(), phase.value) == cells.end()) continue;
    time.plot().legend.push_back({role_of_phase(phase.value), PlotKey::Sample::box, std::string(phase.name)});
  }
}

}  // namespace

double bands_height(const TimelineBands& bands) {
  return (bands.steps.empty() ? 0 : kStrip + kGapBelow) + (shows_phases(bands) ? kStrip + kGapBelow : 0);
}

void add_bands(TimePlot& time, const Timeline& timeline) {
  const TimelineBands& bands = timeline.bands;
  const std::uint64_t duration_ns = std::max<std::uint64_t>(timeline.recording.duration_ns, 1);
  double top = 0;
  if (!bands.steps.empty()) {
    time.plot().margin.push_back({top + kStrip / 2, "steps"});
    add_steps(time, bands.steps, duration_ns, top);
    top += kStrip + kGapBelow;
  }
  if (shows_phases(bands)) {
    time.plot().margin.push_back({top + kStrip / 2, "phases"});
    add_phases(time, phase_cells(bands, duration_ns, kPhaseCells), duration_ns, top);
  } else if (!bands.phases || !bands.phases->empty()) {
    time.plot().remark = "Not drawn: phases, which change too often.";
  }
}

}  // namespace tidemark
