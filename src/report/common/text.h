// Results as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/advice/patterns.h"
#include "analyze/common/result_table.h"
#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "analyze/ledger/ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/plan/plan.h"
#include "analyze/plan/simulation.h"
#include "analyze/plan/verification.h"
#include "analyze/sweep/fit.h"
#include "analyze/sweep/sweep.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/compare.h"
#include "analyze/usage/ranks.h"
#include "analyze/usage/summary.h"
#include "analyze/usage/table.h"
#include "analyze/usage/temporary.h"
#include "analyze/usage/tree.h"
#include "report/common/terminal.h"

namespace tidemark {

[[nodiscard]] std::string to_text(const Summary& summary, const Terminal& terminal);
/// The table of all processes, then the details of some.
[[nodiscard]] std::string to_text(const RankComparison& ranks, const std::vector<const Summary*>& details,
                                  const Terminal& terminal);
[[nodiscard]] std::string to_text(const Table& table, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Breakdown& breakdown, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Tree& tree, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Temporary& temporary, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Patterns& patterns, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Fragmentation& fragmentation, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Leaks& leaks, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Ledger& ledger, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Explanation& explanation, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Comparison& comparison, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Timeline& timeline, const Terminal& terminal);
[[nodiscard]] std::string to_text(const ResultTable& table, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Simulation& simulation, const Terminal& terminal);

/// The verdict, what it is made of, and what held the memory.
[[nodiscard]] std::string to_text(const Plan& plan, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Verification& verification, const Terminal& terminal);
/// The answer, and the trials that led to it.
[[nodiscard]] std::string to_text(const Fit& fit, const Terminal& terminal);
/// All configurations, the laws and their errors.
[[nodiscard]] std::string to_text(const Sweep& sweep, const Terminal& terminal);
/// The table of the categories of what was allocated.
[[nodiscard]] std::string categories_text(const std::vector<CategoryBytes>& categories, std::uint64_t unrecorded_bytes,
                                          const Terminal& terminal);
/// The tables of the categories, where they are known, and call sites that held memory at the device's peak.
[[nodiscard]] std::string holders_text(const SummaryDevice& device, const Terminal& terminal);

/// Which devices are over the budget, and by how much, on one line; empty when none is.
[[nodiscard]] std::string budget_text(const Comparison& comparison);

}  // namespace tidemark
