// The few strokes that charts are made of, over cairo.
#pragma once

#include <cairo.h>

#include <string>

namespace tidemark {

struct Colour {
  double red;
  double green;
  double blue;
  double alpha = 1;
};

namespace colours {
inline constexpr Colour kPaper = {1, 1, 1};
inline constexpr Colour kInk = {0.10, 0.12, 0.16};
inline constexpr Colour kQuiet = {0.40, 0.44, 0.50};
inline constexpr Colour kGrid = {0.90, 0.91, 0.93};
inline constexpr Colour kAxis = {0.62, 0.65, 0.70};
// Three hues that colour-blind people tell apart (after Okabe and Ito), and a fourth for what went wrong.
inline constexpr Colour kAllocated = {0.00, 0.45, 0.70};
inline constexpr Colour kReserved = {0.84, 0.37, 0.00};
inline constexpr Colour kActive = {0.00, 0.62, 0.45};
inline constexpr Colour kAlarm = {0.75, 0.10, 0.15};
// Of the segment map, beside kAllocated and kActive.
inline constexpr Colour kFree = {0.87, 0.89, 0.91};
inline constexpr Colour kMixed = {0.60, 0.77, 0.88};
}  // namespace colours

struct Font {
  double size;
  bool bold;
  Colour colour;
};

/// Not thread-safe; borrows the cairo context.
class Canvas {
 public:
  enum class Align : unsigned char { left, centre, right };

  explicit Canvas(cairo_t* context) : context_(context) {}

  void fill_rectangle(double left, double top, double width, double height, const Colour& colour);
  void line(double x0, double y0, double x1, double y1, double width, const Colour& colour);
  void dot(double x, double y, double radius, const Colour& colour);
  /// `y` is the baseline.
  void text(const std::string& words, double x, double y, const Font& font, Align align = Align::left);
  [[nodiscard]] double text_width(const std::string& words, const Font& font);
  /// Shortens to at most `width`.
  [[nodiscard]] std::string fit(const std::string& words, double width, const Font& font);

  /// A path under construction: move, then lines, then fill or stroke.
  void move_to(double x, double y) { cairo_move_to(context_, x, y); }
  void line_to(double x, double y) { cairo_line_to(context_, x, y); }
  void fill(const Colour& colour);
  void stroke(double width, const Colour& colour);

 private:
  void use(const Font& font);
  void use(const Colour& colour);

  cairo_t* context_;
};

}  // namespace tidemark
