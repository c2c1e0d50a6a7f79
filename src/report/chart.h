// The timeline as a picture: one panel for each device of each recording, on one time axis.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "analyze/timeline.h"
#include "base/result.h"

namespace tidemark {

enum class ChartFormat : std::uint8_t { png, svg };

/// Draws with cairo; the same drawing for every format. Returns the file's bytes, or an error when cairo fails or there
/// are more than kMaxPanels panels.
inline constexpr std::size_t kMaxPanels = 64;
Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format);

}  // namespace tidemark
