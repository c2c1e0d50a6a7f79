// Results as text for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
#include "analyze/restart/restart.h"
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
#include "cluster/job_report.h"
#include "doctor/diagnosis.h"
#include "model/model_facts.h"
#include "monitor/watch_reports.h"
#include "publish/history/history.h"
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
/// The same as a part of another report: without the next command.
[[nodiscard]] std::string leaks_text(const Leaks& leaks, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Ledger& ledger, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Explanation& explanation, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Comparison& comparison, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Timeline& timeline, const Terminal& terminal);
[[nodiscard]] std::string to_text(const ResultTable& table, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Simulation& simulation, const Terminal& terminal);

[[nodiscard]] std::string to_text(const RestartVerdict& verdict, const Terminal& terminal);

/// The verdict, its parts, and the holders of the memory.
[[nodiscard]] std::string to_text(const Plan& plan, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Verification& verification, const Terminal& terminal);
/// The answer, and the trials that led to it.
[[nodiscard]] std::string to_text(const Fit& fit, const Terminal& terminal);
/// All configurations, the laws and their errors.
[[nodiscard]] std::string to_text(const Sweep& sweep, const Terminal& terminal);
/// "53.7 MiB", with "~" before an estimate.
[[nodiscard]] std::string category_bytes_text(const CategoryBytes& category);
/// Allocated memory by category as a table of at most `most` rows.
[[nodiscard]] std::string categories_text(const std::vector<CategoryBytes>& categories, std::uint64_t unrecorded_bytes,
                                          std::size_t most, const Terminal& terminal);
/// The changes that lower the device's peak, if any are known, and the categories and call sites of its memory at the
/// peak. `advice`: whether to list the changes.
[[nodiscard]] std::string holders_text(const SummaryDevice& device, bool advice, const Terminal& terminal);

/// Devices over the budget, with their excess, on one line; empty if there are none.
[[nodiscard]] std::string budget_text(const Comparison& comparison);

/// "rank 1, cuda:1", "rank 1, DataLoader worker 4712 of 4711, cpu", "pid 4711, cuda:0"; the file of a snapshot.
[[nodiscard]] std::string rank_name(const RankRow& row);

/// "+33.3%", or "n/a".
[[nodiscard]] std::string difference_text(const std::optional<double>& difference);

/// "cuda: median of 64 peaks 36.0 MiB; outliers beyond ±1.8 MiB".
[[nodiscard]] std::string group_text(const RankGroup& group);

/// A key without its unit and with spaces: "peak_allocated_bytes" as "peak allocated", "lifetime_ns" as "lifetime".
[[nodiscard]] std::string heading_of(const std::string& key);

/// Printable, with its unit: "12.3 MiB", "1,234", "3.2 ms", "45.1%", a stack on one line; "n/a" if unknown.
[[nodiscard]] std::string value_text(ResultKind kind, const ResultValue& value);

[[nodiscard]] std::string to_text(const Inventory& inventory, const Terminal& terminal);
[[nodiscard]] std::string to_text(const Diagnosis& diagnosis, const Terminal& terminal);

/// `depth` levels of modules; of equal blocks the first one's.
[[nodiscard]] std::string to_text(const ModelFacts& facts, std::size_t depth, const Terminal& terminal);

/// One row for each tensor. Columns: file, tensor, module, layer, dtype, shape, parameters, bytes.
[[nodiscard]] std::string to_csv(const ModelFacts& facts);

[[nodiscard]] std::string to_text(const ProfileReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const OomReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const LeakReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const FragmentReport& report, const Terminal& terminal);

[[nodiscard]] std::string to_text(const JobReport& report, const Terminal& terminal);
[[nodiscard]] std::string to_text(const CommandReport& report, const Terminal& terminal);

[[nodiscard]] std::string to_text(const History& history, const Terminal& terminal);

/// One row for each point. Columns: time (UTC), time_ms, device, id, span_ms, high_bytes, mean_bytes.
[[nodiscard]] std::string to_csv(const History& history);

}  // namespace tidemark
