#include "tui/canvas.h"

#include <algorithm>
#include <array>
#include <utility>

#include "query/words/printable.h"

namespace tidemark::tui {
namespace {

// Length of the first character of `text`, which is valid UTF-8, in bytes.
std::size_t character_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) ++bytes;
  return bytes;
}

// Replacement of a character if only ASCII can be shown.
std::string_view ascii_for(std::string_view character) {
  if (character.size() == 1) return character;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kKnown = {
      {{"…", "~"}, {"→", ">"}, {"°", " "}, {"·", "-"}, {"–", "-"}, {"±", "+"}, {"≥", ">"}, {"×", "x"}}};
  for (const auto& [known, ascii] : kKnown) {
    if (character == known) return ascii;
  }
  return "?";
}

}  // namespace

Canvas::Canvas(std::size_t width, std::size_t height, bool unicode)
    : width_(width), height_(height), unicode_(unicode), cells_(width * height) {}

std::size_t Canvas::print(std::size_t x, std::size_t y, std::string_view text, Style style) {
  if (y >= height_) return x;
  for (std::size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes);
    const std::size_t columns = display_width(character);
    if (columns == 0) {
      if (unicode_ && x != 0 && x <= width_ && !cells_[y * width_ + x - 1].text.empty()) {
        cells_[y * width_ + x - 1].text += character;
      }
      continue;
    }
    if (x + columns > width_) return width_;
    Cell* cell = &cells_[y * width_ + x];
    for (std::size_t column = 0; column < columns; ++column, ++cell) {
      cell->style = style;
      if (unicode_) {
        cell->text = column == 0 ? character : std::string_view();
      } else {
        cell->text = ascii_for(character);
      }
    }
    x += columns;
  }
  return x;
}

void Canvas::select(std::size_t x, std::size_t y, std::size_t columns) {
  if (y >= height_) return;
  for (std::size_t column = x; column < std::min(x + columns, width_); ++column) {
    cells_[y * width_ + column].style.selected = true;
  }
}

std::string Canvas::text() const {
  std::string all;
  for (std::size_t y = 0; y < height_; ++y) {
    std::string line;
    for (std::size_t x = 0; x < width_; ++x) line += at(x, y).text;
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  }
  return all;
}

Region Region::part(std::size_t x, std::size_t y, std::size_t width, std::size_t height) const {
  x = std::min(x, width_);
  y = std::min(y, height_);
  return {*canvas_, x_ + x, y_ + y, std::min(width, width_ - x), std::min(height, height_ - y)};
}

std::size_t Region::print(std::size_t x, std::size_t y, std::string_view text, Style style) const {
  if (y >= height_ || x >= width_) return x;
  const std::size_t room = width_ - x;
  if (display_width(text) <= room) return canvas_->print(x_ + x, y_ + y, text, style) - x_;
  std::size_t bytes = 0;
  for (std::size_t columns = 0; bytes < text.size();) {
    const std::size_t next = character_bytes(text.substr(bytes));
    columns += display_width(text.substr(bytes, next));
    if (columns > room) break;
    bytes += next;
  }
  return canvas_->print(x_ + x, y_ + y, text.substr(0, bytes), style) - x_;
}

void Region::print_right(std::size_t end, std::size_t y, std::string_view text, Style style) const {
  const std::size_t columns = display_width(text);
  print(end > columns ? end - columns : 0, y, text, style);
}

void Region::select_row(std::size_t y) const {
  if (y < height_) canvas_->select(x_, y_ + y, width_);
}

}  // namespace tidemark::tui
