#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/recording_text.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/plot/plots.h"

namespace tidemark::html {
namespace {

void add_categories(std::string& out, const BreakdownDevice& device) {
  open_table(out, {"held", "share", "blocks", "confidence", "category"});
  for (const CategoryBytes& category : device.categories) {
    add_row(out, {format_bytes(category.bytes), share_text(category.share), format_count(category.blocks),
                  std::string(name_in(kConfidenceNames, category.confidence())), category_text(category.category)});
  }
  if (device.unrecorded_bytes != 0) {
    add_row(out, {format_bytes(device.unrecorded_bytes), "", "", "", "<i>not recorded</i>"});
  }
  out += kTableEnd;
}

}  // namespace

void add_breakdown(std::string& out, const PageContents& contents, const std::string& id) {
  if (!contents.breakdown) return;
  open_section(out, id + "breakdown", "Whose memory it was at the peak",
               "Categories add up to what was allocated. Exact ones are known from the pointers of the model's and the "
               "optimizer's tensors, estimated ones from stacks and lifetimes.");
  for (const BreakdownDevice& device : contents.breakdown->devices) {
    if (device.allocated_bytes == 0) continue;
    add_device_heading(out, device.device,
                       fmt::format("{} allocated {}", format_bytes(device.allocated_bytes), at_text(device.at_ns)));
    add_categories(out, device);
    Plot plot = breakdown_plot(device);
    for (PlotBox& box : plot.boxes) box.label.clear();  // the tooltip has it, and a part may be narrow
    add_plot(out, plot, "bars");
    if (!device.groups.empty() && device.groups.front().other_rows != 0) {
      add_remark(out, fmt::format("And {} more: <code>tidemark breakdown --by {} --top 0</code>.",
                                  format_count(device.groups.front().other_rows),
                                  name_in(kOwnerKindNames, device.groups.front().kind)));
    }
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
