// Comparing two recordings, with options as data: for the command and for Python.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyze/attribution/attributed_store.h"
#include "analyze/common/analysis_options.h"
#include "analyze/usage/compare.h"
#include "base/result.h"
#include "query/recording.h"

namespace tidemark {

/// Beside the device and the filter.
[[nodiscard]] std::vector<AnalysisOption> compare_options();

/// Options from AnalysisOptions(compare_options()).
[[nodiscard]] CompareOptions compare_what(const AnalysisOptions& options);

/// The data of a store that comparing needs, for the blocks and owners that the options select.
Result<ComparedRecording> reduce_chosen(AttributedStore&& store, AnalysisOptions options);
Result<ComparedRecording> reduce_chosen(const AttributedStore& store, AnalysisOptions options);

/// Compares recordings that are kept unchanged.
Result<Comparison> compare_recordings(Recording& a, Recording& b, const AnalysisOptions& options);

}  // namespace tidemark
