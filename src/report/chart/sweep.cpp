#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "report/chart/chart.h"
#include "report/chart/picture.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

std::string program_words(const Sweep& sweep) {
  return shown(fmt::format("{}", fmt::join(sweep.program, " ")));
}

}  // namespace

Result<std::string> draw_sweep_curves(const Sweep& sweep, ChartFormat format) {
  Picture picture{"Peak allocated memory", program_words(sweep), {}, "No argument has several numbers.", ""};
  for (const std::size_t argument : sweep.numeric()) {
    if (sweep.arguments[argument].values.size() < 2) continue;
    picture.panels.push_back(
        {fmt::format("over {}, on {}", shown(sweep.arguments[argument].name), shown(sweep.gpus.front().name)),
         sweep_curves_plot(sweep, argument)});
  }
  return draw_picture(picture, format);
}

Result<std::string> draw_sweep_fits(const Sweep& sweep, ChartFormat format) {
  if (auto checked = check_panel_count(sweep.gpus.size()); !checked) return checked.error();
  std::size_t across = 0;  // the argument with the most values
  for (std::size_t index = 1; index < sweep.arguments.size(); ++index) {
    if (sweep.arguments[index].values.size() > sweep.arguments[across].values.size()) across = index;
  }
  Picture picture{"What fits: peak reserved memory", program_words(sweep), {}, "", shown(sweep.arguments[across].name)};
  for (std::size_t gpu = 0; gpu < sweep.gpus.size(); ++gpu) {
    std::string title = shown(sweep.gpus[gpu].name);
    if (const auto& memory = sweep.gpus[gpu].memory_bytes) title += ", " + format_bytes(*memory);
    picture.panels.push_back({title, sweep_fits_plot(sweep, gpu, across)});
  }
  return draw_picture(picture, format);
}

}  // namespace tidemark
