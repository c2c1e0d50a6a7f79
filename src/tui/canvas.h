// An image of a terminal: cells of text with a role, onto which views are drawn without a terminal.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::tui {

/// The role of a cell, which determines its style; the terminal defines the colours.
enum class Role : unsigned char {
  plain,
  heading,   ///< names of views and columns
  quiet,     ///< secondary text: axes, units, hints
  key,       ///< a key that can be pressed
  used,      ///< memory in use, in bars and charts
  peak,      ///< peaks above that
  room,      ///< the unused part of bars
  good,      ///< no risk
  warning,   ///< medium risk; needs attention
  high,      ///< high risk
  critical,  ///< critical risk; errors
};

struct Style {
  Role role = Role::plain;
  bool selected = false;  ///< shown as the cursor is

  bool operator==(const Style&) const = default;
};

struct Cell {
  std::string text = " ";  ///< one character with its combining marks; empty: the right half of the one before
  Style style;
};

/// Not thread-safe. Text outside the canvas is clipped.
class Canvas {
 public:
  /// `unicode`: whether the terminal shows more than ASCII. If not, other characters are replaced.
  Canvas(std::size_t width, std::size_t height, bool unicode = true);

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t height() const { return height_; }
  [[nodiscard]] bool unicode() const { return unicode_; }
  [[nodiscard]] const Cell& at(std::size_t x, std::size_t y) const { return cells_[y * width_ + x]; }

  /// `text` is printable (query/words/printable.h). Returns the column after it. A wide character that would be clipped
  /// is left out.
  std::size_t print(std::size_t x, std::size_t y, std::string_view text, Style style = {});
  /// Makes a row selected from `x` on, `columns` wide.
  void select(std::size_t x, std::size_t y, std::size_t columns);

  /// Its lines without spaces at their ends, each with a newline.
  [[nodiscard]] std::string text() const;

 private:
  std::size_t width_;
  std::size_t height_;
  bool unicode_;
  std::vector<Cell> cells_;
};

/// A rectangle of a canvas, with its own coordinates. Copied by value; the canvas must outlive it.
class Region {
 public:
  explicit Region(Canvas& canvas) : Region(canvas, 0, 0, canvas.width(), canvas.height()) {}

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::size_t height() const { return height_; }
  [[nodiscard]] bool unicode() const { return canvas_->unicode(); }
  /// The rectangle clipped to this region.
  [[nodiscard]] Region part(std::size_t x, std::size_t y, std::size_t width, std::size_t height) const;
  /// The rows from `y` on.
  [[nodiscard]] Region below(std::size_t y) const { return part(0, y, width_, height_); }

  /// As Canvas::print(), with text that is too long cut off at its end.
  std::size_t print(std::size_t x, std::size_t y, std::string_view text, Style style = {}) const;
  std::size_t print(std::size_t x, std::size_t y, std::string_view text, Role role) const {
    return print(x, y, text, Style{role});
  }
  /// Prints text that ends before column `end`.
  void print_right(std::size_t end, std::size_t y, std::string_view text, Style style = {}) const;
  void select_row(std::size_t y) const;

 private:
  Region(Canvas& canvas, std::size_t x, std::size_t y, std::size_t width, std::size_t height)
      : canvas_(&canvas), x_(x), y_(y), width_(width), height_(height) {}

  Canvas* canvas_;
  std::size_t x_;
  std::size_t y_;
  std::size_t width_;
  std::size_t height_;
};

/// The characters that bars and charts are drawn with.
struct Glyphs {
  std::array<const char*, 9> eighths;  ///< columns filled from below by 0 to 8 eighths
  const char* full;                    ///< of a bar
  const char* room;                    ///< of a bar: unused part
  const char* peak;                    ///< of a chart: between the used memory and the peak
  const char* rule;                    ///< a line along a row
  const char* mark;                    ///< a line along a column
};

[[nodiscard]] inline const Glyphs& glyphs_of(const Region& region) {
  static constexpr Glyphs kUnicode = {{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "█", "░", "░", "─", "┊"};
  static constexpr Glyphs kAscii = {{" ", ".", ".", ":", ":", "|", "|", "#", "#"}, "#", ".", ":", "-", "|"};
  return region.unicode() ? kUnicode : kAscii;
}

}  // namespace tidemark::tui
