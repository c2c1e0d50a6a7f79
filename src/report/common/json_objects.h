// The JSON object of each result, for reports that put several into one document.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/advice/patterns.h"
#include "analyze/common/result_table.h"
#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "analyze/ledger/ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/timeline/timeline.h"
#include "analyze/usage/breakdown.h"
#include "analyze/usage/ranks.h"
#include "analyze/usage/summary.h"
#include "analyze/usage/table.h"
#include "analyze/usage/temporary.h"
#include "analyze/usage/tree.h"
#include "query/results/results.h"
#include "report/common/json_parts.h"

namespace tidemark {

Json to_object(const Summary& summary);
Json to_object(const RankComparison& ranks);
Json to_object(const Table& table);
Json to_object(const Breakdown& breakdown);
Json to_object(const Tree& tree);
Json to_object(const Timeline& timeline);
Json to_object(const Fragmentation& fragmentation);
Json to_object(const Temporary& temporary);
Json to_object(const Ledger& ledger);
Json to_object(const Explanation& explanation);
Json to_object(const Patterns& patterns);
Json to_object(const ResultTable& table);

/// [{"category", "bytes", "exact_bytes", "tensor_bytes", "block_count", "share", "known_as"}].
Json categories_json(const std::vector<CategoryBytes>& categories);

/// [{"kind", "avoidable_peak_bytes", "known_as", "held_at_peak_bytes", "held_at_peak_block_count", "modules",
/// "stack"}].
Json advice_json(const std::vector<Advice>& list);

/// [{"module", `key`: bytes}].
Json advice_modules_json(const Advice& advice, const char* key);

/// {"address", "bytes", "free_bytes", "expandable", "blocks"}.
Json segment_json(const MapSegment& segment);

/// {"time_ns", "used_bytes", "lines", "unexplained_bytes", ...}.
Json ledger_json(const LedgerBreakdown& ledger);

template <typename Result>
std::string print_all(std::span<const Result> results) {
  std::vector<Json> objects;
  objects.reserve(results.size());
  for (const Result& result : results) objects.push_back(to_object(result));
  return print_json(std::move(objects));
}

}  // namespace tidemark
