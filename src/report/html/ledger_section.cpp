#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/html/svg_plot.h"
#include "report/plot/plots.h"
#include "report/words/ledger.h"

namespace tidemark::html {
namespace {

void add_lines(std::string& out, const LedgerBreakdown& ledger) {
  open_table(out, {"bytes", "of used", "owner"});
  for (const LedgerRow& row : ledger_rows(ledger)) {
    const std::string words = escaped(row.words);
    add_row(out, {row.bytes, row.share, row.part ? "<span class=\"part\">" + words + "</span>" : words});
  }
  out += kTableEnd;
  for (const std::string& remark : ledger_remarks(ledger)) add_remark(out, escaped(remark));
  for (const LedgerCaveat caveat : ledger.caveats) {
    add_remark(out, "Note: " + escaped(caveat_words(caveat, ledger)) + ".");
  }
}

}  // namespace

void add_ledger(std::string& out, const PageContents& contents, const std::string& id) {
  const auto sampled = [](const LedgerDevice& device) { return device.breakdown.used_bytes.has_value(); };
  if (std::none_of(contents.ledger.devices.begin(), contents.ledger.devices.end(), sampled)) return;
  open_section(
      out, id + "ledger", "All memory of the GPU",
      "The memory that the driver reports as used, by owner: at the sample with the most used bytes, and over time.");
  for (const LedgerDevice& device : contents.ledger.devices) {
    if (!sampled(device)) continue;
    fmt::format_to(std::back_inserter(out), "<h4>{}</h4>\n",
                   escaped(ledger_title(device.device, device.model, device.total_bytes, device.breakdown)));
    add_plot(out, ledger_bar(device), "sum");
    add_lines(out, device.breakdown);
    if (!device.points.empty()) add_plot(out, ledger_plot(device, {contents.recording.duration_ns}), "time");
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
