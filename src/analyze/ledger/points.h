// Ledgers of one device at many times, reduced to what is drawn over time.
#pragma once

#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"

namespace tidemark {

/// The libraries that held most at some time, most first; at most five.
[[nodiscard]] std::vector<std::string> largest_libraries(const std::vector<LedgerBreakdown>& ledgers);

/// One point for each ledger, which has a time and used bytes. `libraries` are told apart, others added up.
[[nodiscard]] std::vector<LedgerPoint> points_of(const std::vector<LedgerBreakdown>& ledgers,
                                                 const std::vector<std::string>& libraries);

}  // namespace tidemark
