// Spans of time, rates and changes in words, and the usual mistakes behind leaks.
#pragma once

#include <string>
#include <string_view>

#include "analyze/common/trend.h"
#include "analyze/forecast/forecaster.h"
#include "analyze/leaks/objects.h"
#include "base/ids.h"

namespace tidemark {

/// "3.2 s", "12 min", "5 h", "9 d".
[[nodiscard]] std::string span_text(double seconds);

/// "12.3 MiB/min".
[[nodiscard]] std::string per_minute_text(double bytes_per_second);

/// "in 2 min (90% interval: 1 min to 4 min)"; without a latest time it ends in "never".
[[nodiscard]] std::string interval_text(const Interval& seconds);

/// "rises by 12.3 MiB", "falls by only 0.4 MiB" if that is negligible: for a change with an interval on one side of
/// zero. `size`: its absolute value.
[[nodiscard]] std::string clear_change_text(const Slope& change, bool matters, const std::string& size);

/// "losses are kept with their autograd graphs" and "keep loss.item() or loss.detach()".
struct MistakeWords {
  std::string_view cause;
  std::string_view fix;
};
/// For a mistake that a leak matches; empty for none. `device`: of the memory.
[[nodiscard]] MistakeWords usual_mistake_words(UsualMistake mistake, Device device);

}  // namespace tidemark
