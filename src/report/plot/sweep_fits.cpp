#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/sweep.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

using Sample = PlotKey::Sample;

constexpr double kFitsRow = 26;
constexpr double kFitsCell = 24;
constexpr double kFitsBelow = 24;  // room for the values
constexpr std::size_t kMaxFitsRows = 60;

Role cell_role(const SweepRow& row) {
  const std::optional<bool> fits = row.fits();
  if (!fits) return Role::free;
  if (row.result) return *fits ? Role::fits : Role::exceeds;
  return *fits ? Role::fits_predicted : Role::exceeds_predicted;
}

// The bytes in a cell: reserved ones, which decide whether it fits.
std::string cell_text(const SweepRow& row) {
  if (row.measured()) return format_bytes(row.result->peak_reserved_bytes.value_or(*row.result->peak_allocated_bytes));
  if (row.prediction && row.prediction->peak_reserved_bytes) {
    return "~" + format_bytes(*row.prediction->peak_reserved_bytes);
  }
  return row.result ? (row.result->fits ? "more" : "failed") : "";
}

}  // namespace

Plot sweep_fits_plot(const Sweep& sweep, std::size_t gpu, std::size_t across) {
  Plot plot;
  plot.description = "What fits on " + shown(sweep.gpus[gpu].name);
  const std::vector<std::string>& values = sweep.arguments[across].values;
  const double width = 1.0 / static_cast<double>(values.size());
  std::map<std::string, std::size_t> places;  // of rows of the plot
  std::size_t left_out = 0;
  for (const SweepRow& row : sweep.rows) {
    if (row.gpu != gpu) continue;
    std::string others;
    for (std::size_t index = 0; index < row.values.size(); ++index) {
      if (index == across) continue;
      others += fmt::format("{}{}={}", others.empty() ? "" : " ", sweep.arguments[index].name, row.values[index]);
    }
    const auto [place, added] = places.emplace(others, places.size());
    if (place->second >= kMaxFitsRows) {
      ++left_out;
      continue;
    }
    const double top = static_cast<double>(place->second) * kFitsRow;
    if (added) plot.margin.push_back({top + kFitsCell / 2, shown(others, 16)});
    const auto column = std::find(values.begin(), values.end(), row.values[across]) - values.begin();
    plot.boxes.push_back({cell_role(row),
                          static_cast<double>(column) * width,
                          width * 0.98,
                          top,
                          kFitsCell,
                          {configuration_text(sweep, row) + ": " + fits_text(row)},
                          {cell_text(row)}});
  }
  plot.frame_height = static_cast<double>(std::min(places.size(), kMaxFitsRows)) * kFitsRow;
  plot.height = plot.frame_height + kFitsBelow;
  for (std::size_t column = 0; column < values.size(); ++column) {
    if (values.size() > 24 && column % (values.size() / 12) != 0) continue;
    plot.ticks.push_back({(static_cast<double>(column) + 0.49) * width, shown(values[column], 12)});
  }
  for (const auto& [role, words] :
       {std::pair(Role::fits, "fits"), std::pair(Role::exceeds, "does not fit"),
        std::pair(Role::fits_predicted, "fits, predicted"),
        std::pair(Role::exceeds_predicted, "does not fit, predicted"), std::pair(Role::free, "failed, or not known")}) {
    if (plot.has_box(role)) plot.legend.push_back({role, Sample::box, words});
  }
  if (left_out != 0) plot.remark = fmt::format("Not drawn: {} configurations.", format_count(left_out));
  return plot;
}

}  // namespace tidemark
