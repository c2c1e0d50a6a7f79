// How the results of analyses are written: as text, JSON, CSV and pictures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "query/analyses/analysis.h"
#include "report/common/terminal.h"

namespace tidemark {

/// "text", "json", and perhaps "csv", "png", "svg".
[[nodiscard]] std::vector<std::string> formats_of(const Analysis& analysis);

/// All results of a run of this analysis in one of its formats. `terminal`: properties of the output.
[[nodiscard]] Result<std::string> write_results(const Analysis& analysis, const AnalysisRun& run,
                                                const std::string& format, const Terminal& terminal);

}  // namespace tidemark
