// The steps and phases of training beside what a timeline shows of memory.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/timeline/timeline.h"
#include "store/store.h"

namespace tidemark {

/// Of all devices and threads together; at most `most` of each. Where there are more steps, every second, fifth, tenth,
/// ... is listed.
[[nodiscard]] TimelineBands find_bands(const Store& store, const Attribution& attribution, std::size_t most);

/// Of `count` steps, every how many there is room for: the least of 1, 2, 5, 10, 20, ... with which at most `most`
/// are left.
[[nodiscard]] std::size_t step_stride(std::size_t count, std::size_t most);

/// The phase that takes most of each of `cells` equal parts of the duration; none where the most is in no phase. Empty
/// where there are no phases, or more than cells.
[[nodiscard]] std::vector<std::optional<Phase>> phase_cells(const TimelineBands& bands, std::uint64_t duration_ns,
                                                            std::size_t cells);

}  // namespace tidemark
