#include "tui/table.h"

#include <algorithm>

#include "query/words/printable.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> widths_of(const std::vector<ListColumn>& columns, std::size_t all) {
  std::size_t taken = columns.empty() ? 0 : (columns.size() - 1) * kGap;
  for (const ListColumn& column : columns) taken += column.width;
  std::vector<std::size_t> widths;
  widths.reserve(columns.size());
  for (const ListColumn& column : columns) {
    widths.push_back(column.width == 0 ? (all > taken ? all - taken : 1) : column.width);
  }
  return widths;
}

void draw_cell(const Region& region, std::size_t x, std::size_t y, std::size_t width, bool left, const ListCell& cell) {
  const std::string text = fit(cell.text, width);
  if (left) {
    region.print(x, y, text, cell.role);
  } else {
    region.print_right(x + width, y, text, {cell.role});
  }
}

}  // namespace

std::size_t last_width(const std::vector<ListColumn>& columns, std::size_t width) {
  return columns.empty() ? 0 : widths_of(columns, width).back();
}

std::size_t first_shown(std::size_t rows, std::size_t selected, std::size_t height) {
  if (rows <= height) return 0;
  return selected <= height / 2 ? 0 : std::min(selected - height / 2, rows - height);
}

void draw_table(const Region& region, const std::vector<ListColumn>& columns, const std::vector<ListRow>& rows,
                std::size_t selected) {
  const std::vector<std::size_t> widths = widths_of(columns, region.width());
  std::size_t x = 0;
  for (std::size_t n = 0; n < columns.size(); ++n) {
    draw_cell(region, x, 0, widths[n], columns[n].left,
              {columns[n].heading, columns[n].sorted ? Role::key : Role::heading});
    x += widths[n] + kGap;
  }
  if (region.height() < 2) return;
  const Region body = region.below(1);
  const std::size_t first = first_shown(rows.size(), selected, body.height());
  for (std::size_t row = first; row < rows.size() && row - first < body.height(); ++row) {
    x = 0;
    for (std::size_t n = 0; n < columns.size() && n < rows[row].size(); ++n) {
      draw_cell(body, x, row - first, widths[n], columns[n].left, rows[row][n]);
      x += widths[n] + kGap;
    }
    if (row == selected) body.select_row(row - first);
  }
}

}  // namespace tidemark::tui
