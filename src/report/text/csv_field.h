// Text from a recording as one field of a CSV row.
#pragma once

#include <string>

namespace tidemark {

/// Printable, and quoted (RFC 4180) where it would break the row.
[[nodiscard]] std::string csv_field(const std::string& raw);

}  // namespace tidemark
