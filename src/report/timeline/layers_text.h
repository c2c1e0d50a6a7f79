// The layers of a timeline, below its drawing.
#pragma once

#include <string>

#include "analyze/timeline/timeline.h"
#include "report/common/terminal.h"

namespace tidemark {

/// What each held at the peak and at the end; nothing without TimelineSeries::splits.
[[nodiscard]] std::string layers_text(const TimelineSeries& series, const Terminal& terminal);

}  // namespace tidemark
