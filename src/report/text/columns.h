// Rows of text in aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/text/terminal.h"

namespace tidemark {

/// Collects rows, then prints them with every column as wide as its widest cell. Cells must be printable text. The last
/// column is left-aligned and gives way when the terminal is too narrow; the others are right-aligned and at most
/// kMostNameColumns wide.
class Columns {
 public:
  explicit Columns(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  /// Every line begins with `indent` spaces and ends with a newline.
  [[nodiscard]] std::string text(const Terminal& terminal, std::size_t indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

}  // namespace tidemark
