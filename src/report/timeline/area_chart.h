// A value over time as a drawing of letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/timeline/host_timeline.h"
#include "report/common/terminal.h"

namespace tidemark {

/// Of what stands at the left of a drawing.
inline constexpr std::size_t kScaleWidth = 12;
/// How many letters wide a drawing is, beside that.
[[nodiscard]] std::size_t drawing_columns(const Terminal& terminal);

/// Ten rows as wide as the terminal, with the scale at the left and the times below. Each column is as high as the
/// highest value in it; `highest` fills it. Points are in order of time.
[[nodiscard]] std::string area_chart(const std::vector<TimedBytes>& points, std::uint64_t highest,
                                     std::uint64_t duration_ns, const Terminal& terminal);

}  // namespace tidemark
