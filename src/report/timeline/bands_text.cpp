#include "report/timeline/bands_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyze/timeline/timeline.h"
#include "report/timeline/area_chart.h"

namespace tidemark {
namespace {

// "d": the first letters differ.
char letter_of(Phase phase) {
  return name_in(kPhaseNames, phase).front();
}

std::string band_line(const char* name, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return fmt::format("{:>{}} {}\n", name, kScaleWidth - 1, line);
}

std::string steps_line(const std::vector<TimelineStep>& steps, std::uint64_t duration_ns, std::size_t columns) {
  constexpr std::size_t kColumnsOfStep = 6;
  const double per_ns = static_cast<double>(columns) / static_cast<double>(std::max<std::uint64_t>(duration_ns, 1));
  const std::size_t stride = step_stride(steps.size(), columns / kColumnsOfStep);
  std::string line(columns, ' ');
  std::size_t free = 0;  // the first column after the number before
  for (std::size_t index = 0; index < steps.size(); index += stride) {
    const std::string words = fmt::format("|{}", steps[index].number);
    const auto column = static_cast<std::size_t>(static_cast<double>(steps[index].begin_ns) * per_ns);
    if (column < free || column + words.size() > columns) continue;
    line.replace(column, words.size(), words);
    free = column + words.size() + 1;
  }
  return line;
}

}  // namespace

std::string bands_text(const TimelineBands& bands, std::uint64_t duration_ns, const Terminal& terminal) {
  const std::size_t columns = drawing_columns(terminal);
  std::string text;
  if (!bands.steps.empty()) text += band_line("steps", steps_line(bands.steps, duration_ns, columns));
  const std::vector<std::optional<Phase>> cells = phase_cells(bands, duration_ns, columns);
  std::string line;
  for (const std::optional<Phase> phase : cells) line += phase ? letter_of(*phase) : ' ';
  std::string legend;
  for (const EnumName<Phase>& phase : kPhaseNames) {
    if (std::find(cells.begin(), cells.end(), phase.value) == cells.end()) continue;
    legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", letter_of(phase.value), phase.name);
  }
  if (!legend.empty()) text += band_line("phases", line) + band_line("", legend);
  return text;
}

}  // namespace tidemark
