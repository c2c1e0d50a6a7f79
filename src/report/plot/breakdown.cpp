#include "analyze/usage/breakdown.h"

#include <algorithm>

#include "query/words/attribution.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

// The categories of the device, in their order, so that bars compare.
BarRow bar_of(const BreakdownDevice& device, const std::string& label, const auto& bytes_of) {
  BarRow bar{label, {}};
  for (const EnumName<Category>& entry : kCategoryNames) {
    const auto held = std::find_if(device.categories.begin(), device.categories.end(),
                                   [&](const CategoryBytes& each) { return each.category == entry.value; });
    if (held == device.categories.end()) continue;
    bar.parts.push_back({category_role(entry.value), category_text(entry.value), bytes_of(*held)});
  }
  return bar;
}

}  // namespace

Plot breakdown_plot(const BreakdownDevice& device) {
  std::vector<BarRow> bars = {bar_of(device, "all", [](const CategoryBytes& held) { return held.bytes; })};
  if (device.unrecorded_bytes != 0) {
    bars.front().parts.push_back({Role::unrecorded, "not recorded", device.unrecorded_bytes});
  }
  if (!device.groups.empty()) {
    std::vector<BreakdownRow> rows = device.groups.front().rows;
    const OwnerKind kind = device.groups.front().kind;
    if (kind == OwnerKind::layer || kind == OwnerKind::module) std::ranges::sort(rows, {}, &BreakdownRow::order);
    for (const BreakdownRow& row : rows) {
      bars.push_back(bar_of(device, owner_text(row.owner),
                            [&](const CategoryBytes& held) { return row.bytes_of(held.category); }));
    }
  }
  Plot plot = bars_plot(bars);
  plot.description = "Allocated memory by category";
  return plot;
}

}  // namespace tidemark
