// What monitors saw in the past, as text and CSV.
#pragma once

#include <string>

#include "publish/history/history.h"
#include "report/common/terminal.h"

namespace tidemark {

[[nodiscard]] std::string to_text(const History& history, const Terminal& terminal);

/// One row for each point. Columns: time (UTC), time_ms, device, id, span_ms, high_bytes, mean_bytes.
[[nodiscard]] std::string to_csv(const History& history);

}  // namespace tidemark
