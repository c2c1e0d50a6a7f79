#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "query/words/host_ledger.h"
#include "query/words/ledger.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/plot/plots.h"

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

void add_kills(std::string& out, const std::vector<HostKill>& kills) {
  for (const HostKill& kill : kills) {
    fmt::format_to(std::back_inserter(out), "<p class=\"verdict alarm\">{}</p>\n", escaped(kill_headline(kill)));
    for (const std::string& line : kill_details(kill)) add_remark(out, escaped(line) + ".");
  }
}

void add_host(std::string& out, const HostLedger& host, const TimeFrame& frame) {
  add_kills(out, host.kills);
  if (!host.breakdown) return;
  const HostBreakdown& ledger = *host.breakdown;
  fmt::format_to(std::back_inserter(out), "<h4>{}</h4>\n", escaped(host_title(ledger)));
  open_table(out, {"bytes", "of used", "owner"});
  for (const LedgerRow& row : host_rows(ledger)) add_row(out, {row.bytes, row.share, escaped(row.words)});
  out += kTableEnd;
  for (const std::string& remark : host_remarks(ledger)) add_remark(out, escaped(remark) + ".");
  for (const HostCaveat caveat : ledger.caveats) add_remark(out, "Note: " + escaped(caveat_words(caveat)) + ".");
  if (!host.points.empty()) add_plot(out, host_ledger_plot(host, frame), "time");
  const HostTable table = host_table(ledger);
  if (table.rows.empty()) return;
  out += "<h4>Processes of the job</h4>\n";
  open_table(out, table.headings);
  for (std::vector<std::string> row : table.rows) {
    row.back() = escaped(row.back());
    add_row(out, row);
  }
  out += kTableEnd;
}

}  // namespace

void add_ledger(std::string& out, const PageContents& contents, const std::string& id) {
  const auto sampled = [](const LedgerDevice& device) { return device.breakdown.used_bytes.has_value(); };
  const auto& host = contents.ledger.host;
  const bool gpus = std::any_of(contents.ledger.devices.begin(), contents.ledger.devices.end(), sampled);
  if (!gpus && !host) return;
  open_section(
      out, id + "ledger", gpus ? "All memory of the GPU" : "All memory of the host",
      gpus ? "The memory that the driver reports as used, by owner: at the sample with the most used bytes, and "
             "over time."
           : "The memory that the kernel reports as used, by what holds it: at the sample with the most used "
             "bytes, and over time.");
  for (const LedgerDevice& device : contents.ledger.devices) {
    if (!sampled(device)) continue;
    fmt::format_to(std::back_inserter(out), "<h4>{}</h4>\n",
                   escaped(ledger_title(device.device, device.model, device.total_bytes, device.breakdown)));
    add_plot(out, ledger_bar(device), "sum");
    add_lines(out, device.breakdown);
    if (!device.points.empty()) add_plot(out, ledger_plot(device, {contents.recording.duration_ns}), "time");
  }
  if (host) add_host(out, *host, {contents.recording.duration_ns});
  out += kSectionEnd;
}

}  // namespace tidemark::html
