#include "report/chart/canvas.h"

#include "report/words/printable.h"

namespace tidemark {

void Canvas::use(const Colour& colour) {
  cairo_set_source_rgba(context_, colour.red, colour.green, colour.blue, colour.alpha);
}

void Canvas::use(const Font& font) {
  cairo_select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_, font.size);
  use(font.colour);
}

void Canvas::fill_rectangle(double left, double top, double width, double height, const Colour& colour) {
  use(colour);
  cairo_rectangle(context_, left, top, width, height);
  cairo_fill(context_);
}

void Canvas::line(double x0, double y0, double x1, double y1, double width, const Colour& colour) {
  move_to(x0, y0);
  line_to(x1, y1);
  stroke(width, colour);
}

void Canvas::dot(double x, double y, double radius, const Colour& colour) {
  use(colour);
  cairo_new_sub_path(context_);
  cairo_arc(context_, x, y, radius, 0, 6.283185307179586);
  cairo_fill(context_);
}

double Canvas::text_width(const std::string& words, const Font& font) {
  use(font);
  cairo_text_extents_t extents;
  cairo_text_extents(context_, words.c_str(), &extents);
  return extents.x_advance;
}

void Canvas::text(const std::string& words, double x, double y, const Font& font, Align align) {
  const double width = align == Align::left ? 0 : text_width(words, font);
  use(font);
  cairo_move_to(context_, x - (align == Align::right ? width : width / 2), y);
  cairo_show_text(context_, words.c_str());
  cairo_new_path(context_);
}

std::string Canvas::fit(const std::string& words, double width, const Font& font) {
  std::string fitted = words;
  for (std::size_t columns = display_width(words); columns > 8 && text_width(fitted, font) > width;) {
    columns -= columns / 16 + 1;
    fitted = tidemark::fit(words, columns);
  }
  return fitted;
}

void Canvas::fill(const Colour& colour) {
  use(colour);
  cairo_fill(context_);
}

void Canvas::stroke(double width, const Colour& colour) {
  use(colour);
  cairo_set_line_width(context_, width);
  cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
  cairo_stroke(context_);
}

}  // namespace tidemark
