// The results that have descriptions, each in src/query/results/NAME.cpp. to_object(result) and to_json(result) of
// describe.h write the JSON of one.
#pragma once

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
#include "query/describe/describe.h"
#include "query/describe/printers.h"

namespace tidemark {

/// Memory attached to the parameters in a sweep of DP-SGD training, by component.
struct DpSgdComponents {
  const DpSgdSweep* sweep = nullptr;
};

// clang-format off
template <typename Visitor> void describe(Visitor& v, const Summary& summary);
template <typename Visitor> void describe(Visitor& v, const RankComparison& ranks);
template <typename Visitor> void describe(Visitor& v, const JobSummary& job);
template <typename Visitor> void describe(Visitor& v, const Breakdown& breakdown);
template <typename Visitor> void describe(Visitor& v, const Table& table);
template <typename Visitor> void describe(Visitor& v, const Tree& tree);
template <typename Visitor> void describe(Visitor& v, const Timeline& timeline);
template <typename Visitor> void describe(Visitor& v, const Temporary& temporary);
template <typename Visitor> void describe(Visitor& v, const Patterns& patterns);
template <typename Visitor> void describe(Visitor& v, const Fragmentation& fragmentation);
template <typename Visitor> void describe(Visitor& v, const MapSegment& segment);
template <typename Visitor> void describe(Visitor& v, const Leaks& leaks);
template <typename Visitor> void describe(Visitor& v, const Ledger& ledger);
template <typename Visitor> void describe(Visitor& v, const Explanation& explanation);
template <typename Visitor> void describe(Visitor& v, const Comparison& comparison);
template <typename Visitor> void describe(Visitor& v, const Simulation& simulation);
template <typename Visitor> void describe(Visitor& v, const Plan& plan);
template <typename Visitor> void describe(Visitor& v, const Verification& verification);
template <typename Visitor> void describe(Visitor& v, const RestartVerdict& verdict);
template <typename Visitor> void describe(Visitor& v, const Sweep& sweep);
template <typename Visitor> void describe(Visitor& v, const Fit& fit);
template <typename Visitor> void describe(Visitor& v, const DpSgdSweep& result);
template <typename Visitor> void describe(Visitor& v, const DpSgdComponents& details);
template <typename Visitor> void describe(Visitor& v, const ResultTable& table);
// clang-format on

/// All that is described.
[[nodiscard]] const DescribedResults& described_results();

}  // namespace tidemark
