#include "report/text/columns.h"

#include <algorithm>
#include <utility>

#include "report/words/printable.h"

namespace tidemark {
namespace {

constexpr std::size_t kColumnGap = 2;
constexpr std::size_t kNarrowestLast = 24;  // of the last column, however narrow the terminal

}  // namespace

Columns::Columns(std::vector<std::string> headings) {
  rows_.push_back(std::move(headings));
}

void Columns::add(std::vector<std::string> cells) {
  for (std::size_t column = 0; column + 1 < cells.size(); ++column)
    cells[column] = fit(cells[column], kMostNameColumns);
  rows_.push_back(std::move(cells));
}

std::string Columns::text(const Terminal& terminal, std::size_t indent) const {
  const std::size_t last = rows_.front().size() - 1;
  std::vector<std::size_t> widths(last, 0);
  std::size_t before_last = indent;
  for (std::size_t column = 0; column < last; ++column) {
    for (const auto& row : rows_) widths[column] = std::max(widths[column], display_width(row[column]));
    before_last += widths[column] + kColumnGap;
  }
  std::size_t room = 0;
  if (terminal.width != 0) room = std::max(kNarrowestLast, terminal.width - std::min(terminal.width, before_last));

  std::string text;
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    std::string line(indent, ' ');
    for (std::size_t column = 0; column < last; ++column) {
      const std::string& cell = rows_[index][column];
      line.append(widths[column] - display_width(cell), ' ');
      line += cell;
      line.append(kColumnGap, ' ');
    }
    line += fit(rows_[index][last], room);
    line.erase(line.find_last_not_of(' ') + 1);
    text += index == 0 ? paint(terminal, Tone::quiet, line) : line;
    text += '\n';
  }
  return text;
}

}  // namespace tidemark
