// Charts: the use of each device over time.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/risks.h"
#include "tui/canvas.h"
#include "tui/chart.h"
#include "tui/table.h"
#include "tui/view.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// Choices of the left and right keys; 0: the whole time.
constexpr std::array<std::uint64_t, 5> kSpans = {60 * kSecond, 300 * kSecond, 1800 * kSecond, 7200 * kSecond, 0};
constexpr std::size_t kMinRows = 6;  // of a chart with its title
constexpr std::size_t kTextRows = 8;

struct Chart {
  std::string title;
  const WatchedUsage* used = nullptr;
  std::optional<std::uint64_t> limit;
};

std::vector<Chart> charts_of(const MachineState& machine) {
  std::vector<Chart> charts;
  for (const WatchedDevice& device : machine.devices) {
    charts.push_back({printable(watched_title(device, machine)), &device.used, device.limit_bytes()});
  }
  if (!machine.no_gpu) charts.push_back({"Host memory", &machine.host.used, machine.host.limit_bytes()});
  return charts;
}

ChartRange range_of(const MachineState& machine, const ViewState& state) {
  const std::uint64_t span = kSpans[row_of(state.other, kSpans.size())];
  const auto now = static_cast<std::int64_t>(machine.now_ns);
  return {.from_ns = now - static_cast<std::int64_t>(span == 0 ? std::max(machine.now_ns, kSecond) : span),
          .to_ns = now};
}

void draw_marks(const Region& region, const ChartRange& range, std::span<const Mark> marks) {
  for (const Mark& mark : marks) {
    const auto column = column_of(region, range, static_cast<std::int64_t>(mark.time_ns));
    if (!column) continue;
    for (std::size_t y = 0; y < region.height(); ++y) region.print(*column, y, glyphs_of(region).mark, Role::key);
    region.print(*column + 1, 0, mark.name, Role::key);
  }
}

// Choices of `s`: the upper end of a chart.
enum class Scale : unsigned char { limit = 0, peak = 1 };
constexpr std::array<const char*, 2> kScales = {"limit", "peak"};

void draw_one(const Region& region, const Chart& chart, ChartRange range, Scale scale, std::span<const Mark> marks,
              bool selected) {
  const std::size_t x = region.print(0, 0, chart.title, Role::heading);
  if (selected) region.part(0, 0, x, 1).select_row(0);
  if (chart.used->empty()) {
    region.print(x + 2, 0, "no samples", Role::quiet);
    return;
  }
  const std::uint64_t peak = chart.used->peak_bytes();
  region.print_right(region.width(), 0,
                     fmt::format("now {}  peak {}  of {}", format_bytes(chart.used->last_bytes()), format_bytes(peak),
                                 size_text(chart.limit)));
  range.top_bytes = scale == Scale::limit ? chart.limit.value_or(peak) : peak;
  const Region body = region.below(1);
  draw_marks(body, range, marks);
  draw_chart(body, chart.used->points(), range);
}

std::size_t chart_row_count(const Content& content, const ViewState& /*state*/) {
  return charts_of(content.machine).size();
}

std::size_t chart_others(const Content& /*content*/) {
  return kSpans.size();
}

void draw_charts(const Region& region, const Content& content, const ViewState& state) {
  if (!draw_waiting(region, content.machine)) return;
  const std::vector<Chart> charts = charts_of(content.machine);
  if (charts.empty() || region.height() < kMinRows + 1) return;
  const bool text = state.selected == kNoRow;
  const std::size_t body = region.height() - 1;
  const std::size_t shown = text ? charts.size() : std::clamp<std::size_t>(body / kMinRows, 1, charts.size());
  const std::size_t height = text ? kTextRows : body / shown;
  const std::size_t selected = row_of(state.selected, charts.size());
  const std::size_t first = text ? 0 : first_shown(charts.size(), selected, shown);
  const ChartRange range = range_of(content.machine, state);
  for (std::size_t n = 0; n < shown; ++n) {
    draw_one(region.part(0, n * height, region.width(), height), charts[first + n], range,
             static_cast<Scale>(state.order), content.marks, first + n == selected);
  }
  draw_times(region, shown * height, range);
}

}  // namespace

View charts_view() {
  return {.name = "charts",
          .title = "Charts",
          .keys = "left/right time span  s scale",
          .orders = kScales,
          .rows = chart_row_count,
          .others = chart_others,
          .draw = draw_charts};
}

}  // namespace tidemark::tui
