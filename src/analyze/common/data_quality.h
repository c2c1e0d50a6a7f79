// What is missing from a recording, and how bad that is.
#pragma once

#include <vector>

#include "store/store.h"
#include "store/symbols.h"
#include "trace/data_quality.h"

namespace tidemark {

struct DataQuality {
  /// True when no event of the recorded program is missing, from the recording's start to the program's end.
  bool complete = true;
  std::vector<QualityIssue> issues;  ///< worst first
};

/// `symbols` should have named everything that will be shown before: files without symbols are listed only when asked
/// for.
[[nodiscard]] DataQuality analyze_data_quality(const Overview& overview, const Symbols& symbols);

}  // namespace tidemark
