#include "report/words/ledger_rows.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/words/ledger.h"
#include "report/words/recording.h"

namespace tidemark {
namespace {

std::string share_of_used(double bytes, const LedgerBreakdown& ledger) {
  if (ledger.used_bytes.value_or(0) == 0) return {};
  return share_text(bytes / static_cast<double>(*ledger.used_bytes));
}

std::string share_of_used(const std::optional<std::uint64_t>& bytes, const LedgerBreakdown& ledger) {
  return bytes ? share_of_used(static_cast<double>(*bytes), ledger) : std::string();
}

}  // namespace

std::vector<LedgerRow> ledger_rows(const LedgerBreakdown& ledger) {
  std::vector<LedgerRow> rows;
  rows.reserve(ledger.lines.size() + 3);
  for (const LedgerLine& line : ledger.lines) {
    rows.push_back({bytes_text(line.bytes), share_of_used(line.bytes, ledger), line_words(line, ledger)});
    if (line.part != LedgerPart::pytorch || !line.bytes) continue;
    rows.push_back(
        {bytes_text(ledger.allocated_bytes), share_of_used(ledger.allocated_bytes, ledger), "allocated", true});
    rows.push_back({bytes_text(ledger.cached_bytes), share_of_used(ledger.cached_bytes, ledger), "cached", true});
  }
  const auto& rest = ledger.unexplained_bytes;
  rows.push_back(
      {signed_bytes_text(rest), rest ? share_of_used(static_cast<double>(*rest), ledger) : "", "unexplained"});
  return rows;
}

std::vector<std::string> ledger_remarks(const LedgerBreakdown& ledger) {
  std::vector<std::string> remarks;
  if (ledger.managed_bytes.value_or(0) != 0) {
    remarks.push_back(fmt::format("{} of managed memory, not included: how much of it is on the GPU is unknown",
                                  format_bytes(*ledger.managed_bytes)));
  }
  if (ledger.pinned_host_bytes.value_or(0) != 0) {
    remarks.push_back(fmt::format("{} of pinned host memory, not included", format_bytes(*ledger.pinned_host_bytes)));
  }
  return remarks;
}

}  // namespace tidemark
