#include "report/words/ledger.h"

#include <algorithm>

#include "report/text/columns.h"
#include "report/text/parts.h"
#include "report/text/text.h"

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

}  // namespace

std::string to_text(const Ledger& ledger, const Terminal& terminal) {
  std::string text;
  for (const LedgerDevice& device : ledger.devices) {
    if (!text.empty()) text += "\n";
    text += device_text(device, terminal);
  }
  if (ledger.devices.empty()) text += "The recorded process used no GPU; --device shows one that it did not use.\n";
  return text + quality_hint(ledger.recording, terminal);
}

}  // namespace tidemark
