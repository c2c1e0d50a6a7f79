// The values of a ResultTable, and the headings of its columns, in words.
#pragma once

#include <string>

#include "analyze/common/result_table.h"

namespace tidemark {

/// A key without its unit and with spaces: "peak_allocated_bytes" as "peak allocated", "lifetime_ns" as "lifetime".
[[nodiscard]] std::string heading_of(const std::string& key);

/// Printable, with its unit: "12.3 MiB", "1,234", "3.2 ms", "45.1%", a stack on one line; "n/a" where it is not known.
[[nodiscard]] std::string value_text(ResultKind kind, const ResultValue& value);

}  // namespace tidemark
