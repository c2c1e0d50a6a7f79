// Labels of a ledger's lines and texts of its caveats, for every report.
#pragma once

#include <string>

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

}  // namespace tidemark
