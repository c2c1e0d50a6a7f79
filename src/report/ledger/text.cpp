#include "report/common/text.h"

#include <algorithm>

#include "query/words/host_ledger.h"
#include "query/words/ledger.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string device_text(const LedgerDevice& device, const Terminal& terminal) {
  const LedgerBreakdown& ledger = device.breakdown;
  std::string text =
      paint(terminal, Tone::heading, ledger_title(device.device, device.model, device.total_bytes, ledger)) + "\n";
  Columns columns({"bytes", "of used", "owner"});
  for (const LedgerRow& row : ledger_rows(ledger))
    columns.add({row.bytes, row.share, (row.part ? "  " : "") + row.words});
  text += columns.text(terminal, 2);
  for (const std::string& remark : ledger_remarks(ledger)) text += "  " + remark + "\n";
  for (const LedgerCaveat caveat : ledger.caveats) {
    text += "  " + paint(terminal, Tone::quiet, "note: " + caveat_words(caveat, ledger)) + "\n";
  }
  return text;
}

std::string host_text(const HostBreakdown& ledger, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, host_title(ledger)) + "\n";
  Columns columns({"bytes", "of used", "owner"});
  for (const LedgerRow& row : host_rows(ledger)) columns.add({row.bytes, row.share, row.words});
  text += columns.text(terminal, 2);
  for (const std::string& remark : host_remarks(ledger)) text += "  " + remark + "\n";
  for (const HostCaveat caveat : ledger.caveats) {
    text += "  " + paint(terminal, Tone::quiet, "note: " + std::string(caveat_words(caveat))) + "\n";
  }
  const HostTable table = host_table(ledger);
  if (table.rows.empty()) return text;
  Columns processes(table.headings);
  for (const std::vector<std::string>& row : table.rows) processes.add(row);
  return text + "\n" + processes.text(terminal, 2);
}

}  // namespace

std::string kills_text(std::span<const HostKill> kills, const Terminal& terminal) {
  std::string text;
  for (const HostKill& kill : kills) {
    text += paint(terminal, Tone::error, kill_headline(kill)) + "\n";
    for (const std::string& line : kill_details(kill)) text += "  " + line + "\n";
  }
  return text;
}

std::string to_text(const Ledger& ledger, const Terminal& terminal) {
  std::string text;
  for (const LedgerDevice& device : ledger.devices) {
    if (!text.empty()) text += "\n";
    text += device_text(device, terminal);
  }
  if (ledger.host) {
    if (!text.empty()) text += "\n";
    if (ledger.host->breakdown) {
      text += host_text(*ledger.host->breakdown, terminal);
    } else {
      text += paint(terminal, Tone::heading, "host") + "\n  No sample of the host had been taken by then.\n";
    }
    if (!ledger.host->kills.empty()) text += "\n" + kills_text(ledger.host->kills, terminal);
  } else if (ledger.devices.empty()) {
    text += "The recorded process used no GPU; --device shows one that it did not use.\n";
  }
  return text + quality_hint(ledger.recording, terminal);
}

}  // namespace tidemark
