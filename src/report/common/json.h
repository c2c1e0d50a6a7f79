// Results as JSON for programs. docs/commands.md describes the fields.
//
// One result is one object; several are {"recordings": [object, ...]}. Bytes and times are integers, unknown values
// null; text that is not UTF-8 has U+FFFD in place of the bytes that are not. Ends with a newline.
#pragma once

#include <span>
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
#include "analyze/sweep/dp_sgd.h"
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
#include "query/results/results.h"

namespace tidemark {

/// Of what has a description.
template <typename Result>
[[nodiscard]] std::string to_json(std::span<const Result> results) {
  std::vector<Json> objects;
  for (const Result& result : results) objects.push_back(to_object(result));
  return print_json(std::move(objects));
}

[[nodiscard]] std::string to_json(std::span<const Summary> summaries);
/// {"ranks": {...}, "recordings": [object, ...]}.
[[nodiscard]] std::string to_json(const RankComparison& ranks, const std::vector<const Summary*>& details);
[[nodiscard]] std::string to_json(std::span<const Table> tables);
[[nodiscard]] std::string to_json(std::span<const Breakdown> results);
[[nodiscard]] std::string to_json(std::span<const Tree> trees);
[[nodiscard]] std::string to_json(std::span<const Temporary> results);
[[nodiscard]] std::string to_json(std::span<const Patterns> results);
[[nodiscard]] std::string to_json(std::span<const Fragmentation> results);
[[nodiscard]] std::string to_json(std::span<const Ledger> ledgers);
[[nodiscard]] std::string to_json(std::span<const Explanation> explanations);
[[nodiscard]] std::string to_json(const Comparison& comparison);
[[nodiscard]] std::string to_json(std::span<const Timeline> timelines);
[[nodiscard]] std::string to_json(std::span<const ResultTable> tables);
[[nodiscard]] std::string to_json(const Plan& plan);
[[nodiscard]] std::string to_json(const Verification& verification);
[[nodiscard]] std::string to_json(const Fit& fit);
[[nodiscard]] std::string to_json(std::span<const Simulation> simulations);
[[nodiscard]] std::string to_json(const Sweep& sweep);

/// Peaks and phases of each configuration.
[[nodiscard]] std::string dp_sgd_results_json(const DpSgdSweep& result);
/// Phases, and what hung on the parameters, by component.
[[nodiscard]] std::string dp_sgd_details_json(const DpSgdSweep& result);

}  // namespace tidemark
