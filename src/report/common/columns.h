// Rows of text in aligned columns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analyze/common/stack_names.h"
#include "report/common/terminal.h"

namespace tidemark {

/// Printable text in at most `width` columns; 0 = unlimited.
using FittedText = std::function<std::string(std::size_t width)>;

/// stack_text_with_callers() or stack_text() of a stack, which must outlive it.
[[nodiscard]] FittedText fitted_with_callers(const NamedStack& stack);
[[nodiscard]] FittedText fitted(const NamedStack& stack);

/// Collects rows, then prints them with every column as wide as its widest cell. Cells must be printable text. The last
/// column is left-aligned and gets shorter when the terminal is too narrow; the others are right-aligned and at most
/// kMaxNameColumns wide.
class Columns {
 public:
  explicit Columns(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  /// The last cell is `last`.
  void add(std::vector<std::string> cells, FittedText last);
  /// Adds a separate line below the latest row.
  void add_below(FittedText line);
  /// Every line begins with `indent` spaces and ends with a newline.
  [[nodiscard]] std::string text(const Terminal& terminal, std::size_t indent) const;

 private:
  struct Row {
    std::vector<std::string> cells;  // without the last
    FittedText last;
    std::vector<FittedText> below;
  };

  std::vector<Row> rows_;  // the headings first
};

}  // namespace tidemark
