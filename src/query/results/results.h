// The descriptions of results: each in its own file, src/query/results/NAME.cpp. to_object(result) of describe.h writes
// the JSON of one.
#pragma once

#include "analyze/leaks/leaks.h"
#include "query/describe/describe.h"
#include "query/describe/printers.h"

namespace tidemark {

template <typename Visitor>
void describe(Visitor& v, const Leaks& leaks);

/// All that is described.
[[nodiscard]] const DescribedResults& described_results();

}  // namespace tidemark
