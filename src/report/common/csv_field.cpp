#include "report/common/csv_field.h"

#include <fmt/format.h>

#include "query/words/printable.h"

namespace tidemark {

std::string csv_field(const std::string& raw) {
  std::string text = printable(raw);
  // Spreadsheets take such a cell for a formula (OWASP, CSV injection). A tab or CR at the start was escaped above.
  if (text.find_first_of("=+-@") == 0) text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string number_field(const std::optional<std::uint64_t>& number) {
  return number ? fmt::format(",{}", *number) : ",";
}

std::string yes_field(const std::optional<bool>& value) {
  return value ? *value ? ",true" : ",false" : ",";
}

}  // namespace tidemark
