// The steps and phases of training, below the drawing of a timeline.
#pragma once

#include <cstdint>
#include <string>

#include "analyze/timeline/timeline.h"
#include "report/common/terminal.h"

namespace tidemark {

/// Lines as wide as those of area_chart(): where steps begin, with numbers where there is room, and the phase that
/// takes most of each column. Nothing of what is not known.
[[nodiscard]] std::string bands_text(const TimelineBands& bands, std::uint64_t duration_ns, const Terminal& terminal);

}  // namespace tidemark
