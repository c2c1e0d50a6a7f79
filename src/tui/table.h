// Rows of a list with a cursor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tui/canvas.h"

namespace tidemark::tui {

struct ListColumn {
  std::string heading;
  std::size_t width = 0;  ///< 0: the remaining width; one column at most
  bool left = false;      ///< else right-aligned
  bool sorted = false;    ///< by this one
};

struct ListCell {
  std::string text;  ///< printable; shortened to fit
  Role role = Role::plain;
};

using ListRow = std::vector<ListCell>;

/// The width of the last column, given the number of columns.
[[nodiscard]] std::size_t last_width(const std::vector<ListColumn>& columns, std::size_t width);

/// The first visible row if `rows` are visible, with `selected` among them.
[[nodiscard]] std::size_t first_shown(std::size_t rows, std::size_t selected, std::size_t height);

/// Headings, then as many rows as fit, with the selected one in the middle if there are more. The row `selected` is
/// marked, if it exists.
void draw_table(const Region& region, const std::vector<ListColumn>& columns, const std::vector<ListRow>& rows,
                std::size_t selected);

}  // namespace tidemark::tui
