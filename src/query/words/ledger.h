// A ledger in words: its lines and caveats, and its rows for text and HTML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"

namespace tidemark {

/// "reserved by PyTorch", "NCCL", "python other.py (pid 12)". Printable.
[[nodiscard]] std::string line_words(const LedgerLine& line, const LedgerBreakdown& ledger);
/// A sentence for people, without its full stop.
[[nodiscard]] std::string caveat_words(LedgerCaveat caveat, const LedgerBreakdown& ledger);
/// "1.5 GiB", "-12.0 MiB", "n/a".
[[nodiscard]] std::string signed_bytes_text(const std::optional<std::int64_t>& bytes);
/// "cuda:0  NVIDIA H200, 79.1 GiB used of 139.8 GiB at 3.210 s". Printable.
[[nodiscard]] std::string ledger_title(const std::string& device, const std::string& model,
                                       const std::optional<std::uint64_t>& total_bytes, const LedgerBreakdown& ledger);

/// All printable.
struct LedgerRow {
  std::string bytes;
  std::string share;  ///< of the used memory; empty if unknown
  std::string words;
  bool part = false;  ///< part of the row above, which has the sum
};

/// The lines that add up, with parts of PyTorch's reserved memory below it; `unexplained` comes last.
[[nodiscard]] std::vector<LedgerRow> ledger_rows(const LedgerBreakdown& ledger);

/// Memory outside the sum: "1.5 GiB of pinned host memory, not included". Printable, may be empty.
[[nodiscard]] std::vector<std::string> ledger_remarks(const LedgerBreakdown& ledger);

}  // namespace tidemark
