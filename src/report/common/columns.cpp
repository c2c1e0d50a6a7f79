#include "report/common/columns.h"

#include <algorithm>
#include <utility>

#include "query/words/printable.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

constexpr std::size_t kColumnGap = 2;
constexpr std::size_t kIndentBelow = 4;     // of lines below a row
constexpr std::size_t kNarrowestLine = 20;  // however narrow the terminal

}  // namespace

FittedText fitted_with_callers(const NamedStack& stack) {
  return [&stack](std::size_t width) { return stack_text_with_callers(stack, width); };
}

FittedText fitted(const NamedStack& stack) {
  return [&stack](std::size_t width) { return stack_text(stack, width); };
}

Columns::Columns(std::vector<std::string> headings) {
  add(std::move(headings));
}

void Columns::add(std::vector<std::string> cells) {
  std::string last = std::move(cells.back());
  cells.pop_back();
  add(std::move(cells), [last = std::move(last)](std::size_t width) { return fit(last, width); });
}

void Columns::add(std::vector<std::string> cells, FittedText last) {
  for (std::string& cell : cells) cell = fit(cell, kMaxNameColumns);
  rows_.push_back({std::move(cells), std::move(last), {}});
}

void Columns::add_below(FittedText line) {
  rows_.back().below.push_back(std::move(line));
}

std::string Columns::text(const Terminal& terminal, std::size_t indent) const {
  std::vector<std::size_t> widths(rows_.front().cells.size(), 0);
  std::size_t before_last = indent;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (const Row& row : rows_) widths[column] = std::max(widths[column], display_width(row.cells[column]));
    before_last += widths[column] + kColumnGap;
  }
  const auto room_after = [&](std::size_t columns) {
    if (terminal.width == 0) return std::size_t{0};
    return std::max(kNarrowestLine, terminal.width - std::min(terminal.width, columns));
  };
  const std::size_t room = room_after(before_last);
  const std::size_t room_below = room_after(indent + kIndentBelow);

  std::string text;
  const auto add_line = [&](std::string line, const Row& row) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += &row == &rows_.front() ? paint(terminal, Tone::quiet, line) : line;
    text += '\n';
  };
  for (const Row& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t column = 0; column < widths.size(); ++column) {
      line.append(widths[column] - display_width(row.cells[column]), ' ');
      line += row.cells[column];
      line.append(kColumnGap, ' ');
    }
    add_line(line + row.last(room), row);
    const std::string space(indent + kIndentBelow, ' ');
    for (const FittedText& below : row.below) add_line(space + below(room_below), row);
  }
  return text;
}

}  // namespace tidemark
