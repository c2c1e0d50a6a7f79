// Text from a recording as one field of a CSV row.
#pragma once

#include <string>

namespace tidemark {

/// Printable, quoted (RFC 4180) where it would break the row, and with a ' before it where it begins with =, +, - or @,
/// so that no spreadsheet runs it as a formula. Not for numbers.
[[nodiscard]] std::string csv_field(const std::string& raw);

}  // namespace tidemark
