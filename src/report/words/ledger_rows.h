// A ledger as rows of a table, for text and HTML.
#pragma once

#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"

namespace tidemark {

/// All printable.
struct LedgerRow {
  std::string bytes;
  std::string share;  ///< of what is used; empty where there is none
  std::string words;
  bool part = false;  ///< of the row above it, which has the sum
};

/// The lines that add up, with what PyTorch reserved split up below it; `unexplained` comes last.
[[nodiscard]] std::vector<LedgerRow> ledger_rows(const LedgerBreakdown& ledger);

/// Memory that is not in the sum: "1.5 GiB of pinned host memory, not included". Printable, may be empty.
[[nodiscard]] std::vector<std::string> ledger_remarks(const LedgerBreakdown& ledger);

}  // namespace tidemark
