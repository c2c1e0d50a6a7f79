// What presets/dp_sgd.py says at its end.
#pragma once

#include <string>
#include <string_view>

#include "analyze/sweep/dp_sgd.h"
#include "base/result.h"

namespace tidemark {

/// In the last line "DP_SGD {...}" of what it wrote. An error where there is none, or it says something else.
[[nodiscard]] Result<DpSgdReport> parse_dp_sgd(std::string_view output);

/// Of a trial that has ended, from its files in `folder`.
[[nodiscard]] Result<DpSgdReport> read_dp_sgd(const std::string& folder);

}  // namespace tidemark
