// Memory of the host in words, for text and HTML.
#pragma once

#include <vector>

#include "analyze/timeline/host_timeline.h"
#include "query/words/recording_text.h"

namespace tidemark {

/// "peak RSS: 774.2 MiB at 3.210 s, 700.1 MiB at end", and so on; empty without samples.
[[nodiscard]] std::vector<Fact> host_facts(const HostUsage& host);

}  // namespace tidemark
