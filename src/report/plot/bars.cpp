#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "report/plot/axis.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

constexpr double kBarRow = 22;
constexpr double kBarBox = 18;
constexpr double kBelowBars = 26;  // room for the sizes
constexpr std::size_t kLongestLabel = 17;
constexpr std::size_t kMaxBars = 100;

void add_bar_key(Plot& plot, const BarRow::Part& part) {
  const PlotKey key{part.role, PlotKey::Sample::box, shown(part.words)};
  if (std::find(plot.legend.begin(), plot.legend.end(), key) == plot.legend.end()) plot.legend.push_back(key);
}

}  // namespace

Plot bars_plot(const std::vector<BarRow>& rows, std::uint64_t scale_bytes) {
  Plot plot;
  std::uint64_t longest = std::max<std::uint64_t>(scale_bytes, 1);
  const std::size_t drawn = std::min(rows.size(), kMaxBars);
  for (const BarRow& row : rows) {
    std::uint64_t bytes = 0;
    for (const BarRow::Part& part : row.parts) bytes += part.bytes;
    longest = std::max(longest, bytes);
  }
  const std::vector<Tick> ticks = byte_ticks(longest);
  const double scale = std::max(1.0, ticks.back().value);
  for (const Tick& tick : ticks) {
    const PlotAlign align = tick.value == 0       ? PlotAlign::start
                            : tick.value == scale ? PlotAlign::end
                                                  : PlotAlign::middle;
    plot.ticks.push_back({tick.value / scale, tick.label, align});
  }
  for (std::size_t index = 0; index < drawn; ++index) {
    const double top = static_cast<double>(index) * kBarRow;
    plot.margin.push_back({top + kBarBox / 2, shown(rows[index].label, kLongestLabel)});
    double at = 0;
    for (const BarRow::Part& part : rows[index].parts) {
      if (part.bytes == 0) continue;
      add_bar_key(plot, part);
      const double width = static_cast<double>(part.bytes) / scale;
      plot.boxes.push_back({part.role,
                            at,
                            width,
                            top,
                            kBarBox,
                            {fmt::format("{}: {}", shown(part.words), format_bytes(part.bytes))},
                            {format_bytes(part.bytes)}});
      at += width;
    }
  }
  plot.frame_height = static_cast<double>(drawn) * kBarRow;
  plot.height = plot.frame_height + kBelowBars;
  if (drawn < rows.size()) plot.remark = fmt::format("Not drawn: {} other bars.", format_count(rows.size() - drawn));
  return plot;
}

}  // namespace tidemark
