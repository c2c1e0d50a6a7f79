// Text from a recording as one field of a CSV row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark {

/// Printable, quoted (RFC 4180) where it would break the row, and with a ' before it where it begins with =, +, - or @,
/// so that no spreadsheet runs it as a formula. Not for numbers.
[[nodiscard]] std::string csv_field(const std::string& raw);

/// ",123" and ",true": a field with the comma before it; empty where it is not known.
[[nodiscard]] std::string number_field(const std::optional<std::uint64_t>& number);
[[nodiscard]] std::string yes_field(const std::optional<bool>& value);

}  // namespace tidemark
