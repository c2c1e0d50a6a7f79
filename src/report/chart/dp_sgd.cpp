#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "query/words/printable.h"
#include "report/chart/chart.h"
#include "report/chart/picture.h"
#include "report/dp_sgd/words.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxConfigurations = 12;  // with a panel of their own
constexpr std::array kRolesOfNames = {Role::site5, Role::site2, Role::site3, Role::site4,
                                      Role::site7, Role::site6, Role::site8, Role::site1};

// The same colour for a name in all panels; the first ones are those on which words are read best.
class NamedRoles {
 public:
  Role role(const std::string& name) {
    return kRolesOfNames[places_.emplace(name, places_.size()).first->second % kRolesOfNames.size()];
  }

 private:
  std::map<std::string, std::size_t> places_;
};

// Rows with a report, those with the highest peak, in their order.
std::vector<std::size_t> largest_rows(const DpSgdSweep& result) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < result.reports.size(); ++row) {
    if (result.reports[row]) rows.push_back(row);
  }
  const auto peak = [&](std::size_t row) {
    const auto& trial = result.sweep.rows[row].result;
    return trial ? trial->peak_allocated_bytes.value_or(0) : 0;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return peak(a) > peak(b); });
  rows.resize(std::min(rows.size(), kMaxConfigurations));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

Result<std::string> draw_dp_sgd_components(const DpSgdSweep& result, ChartFormat format) {
  std::vector<std::pair<std::string, std::vector<BarRow>>> kinds;  // in the order of the reports
  NamedRoles roles;
  for (std::size_t row = 0; row < result.reports.size(); ++row) {
    if (!result.reports[row]) continue;
    for (const ParameterMemory& memory : result.reports[row]->kinds) {
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& of) { return of.first == memory.kind; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {memory.kind, {}});
      BarRow& bar = kind->second.emplace_back();
      bar.label = configuration_name(row);
      for (const ComponentBytes& component : memory.components) {
        bar.parts.push_back({roles.role(component.name), component.name, component.bytes});
      }
    }
  }
  if (auto checked = check_panel_count(kinds.size()); !checked) return checked.error();
  Picture picture{
      "Memory of the parameters, by component", shown(result.model), {}, "No configuration ran to its end.", ""};
  for (const auto& [kind, bars] : kinds) picture.panels.push_back({shown(kind_words(kind)), bars_plot(bars)});
  return draw_picture(picture, format);
}

Result<std::string> draw_dp_sgd_phases(const DpSgdSweep& result, ChartFormat format) {
  Picture picture{
      "Peak of the allocated memory, by phase", shown(result.model), {}, "No configuration ran to its end.", ""};
  const std::vector<std::size_t> rows = largest_rows(result);
  std::uint64_t highest = 0;
  for (const std::size_t row : rows) {
    for (const PhaseMemory& phase : result.reports[row]->phases) highest = std::max(highest, phase.peak_bytes);
  }
  for (const std::size_t row : rows) {
    std::vector<BarRow> bars;
    for (const PhaseMemory& phase : result.reports[row]->phases) {
      const std::uint64_t kept = std::min(phase.end_bytes, phase.peak_bytes);
      bars.push_back(
          {phase.name,
           {{Role::site5, "allocated at its end", kept}, {Role::site2, "more at its peak", phase.peak_bytes - kept}}});
    }
    picture.panels.push_back(
        {configuration_name(row) + ": " + configuration_words(result.sweep, row), bars_plot(bars, highest)});
  }
  const auto reported = static_cast<std::size_t>(std::count_if(result.reports.begin(), result.reports.end(),
                                                               [](const auto& report) { return report.has_value(); }));
  if (!rows.empty() && reported > rows.size()) {
    picture.panels.back().plot.remark =
        fmt::format("Not drawn: {} configurations with lower peaks.", reported - rows.size());
  }
  return draw_picture(picture, format);
}

}  // namespace tidemark
