#include "report/text/csv_field.h"

#include "report/words/printable.h"

namespace tidemark {

std::string csv_field(const std::string& raw) {
  std::string text = printable(raw);
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

}  // namespace tidemark
