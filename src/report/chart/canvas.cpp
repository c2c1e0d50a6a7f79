#include "report/chart/canvas.h"

#include <cairo-svg.h>
#include <fmt/format.h>

#include <memory>

#include "query/words/printable.h"

#ifdef __has_feature
#define TIDEMARK_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TIDEMARK_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TIDEMARK_HAS_FEATURE(address_sanitizer)
// The leak checker asks the program for this. fontconfig keeps what cairo's fonts held: not ours to free.
extern "C" const char* __lsan_default_suppressions();  // NOLINT
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig.so\n";
}  // NOLINT
#endif

namespace tidemark {
namespace {

constexpr double kScale = 2;  // pixels per unit in a PNG: sharp on today's screens

cairo_status_t append(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

}  // namespace

void Canvas::use(Role role, double opacity) {
  const Colour colour = colour_of(role);
  cairo_set_source_rgba(context_, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0, opacity);
}

void Canvas::use(const Font& font) {
  cairo_select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_, font.size);
  use(font.role);
}

void Canvas::fill_rectangle(double left, double top, double width, double height, Role role, double opacity) {
  use(role, opacity);
  cairo_rectangle(context_, left, top, width, height);
  cairo_fill(context_);
}

void Canvas::line(double x0, double y0, double x1, double y1, double width, Role role) {
  move_to(x0, y0);
  line_to(x1, y1);
  stroke(width, role);
}

void Canvas::dot(double x, double y, double radius, Role role) {
  use(role);
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

double Canvas::start_of(const std::string& words, double x, const Font& font, PlotAlign align) {
  if (align == PlotAlign::start) return x;
  const double width = text_width(words, font);
  return x - (align == PlotAlign::end ? width : width / 2);
}

void Canvas::text(const std::string& words, double x, double y, const Font& font, PlotAlign align) {
  const double start = start_of(words, x, font, align);
  use(font);
  cairo_move_to(context_, start, y);
  cairo_show_text(context_, words.c_str());
  cairo_new_path(context_);
}

void Canvas::outlined_text(const std::string& words, double x, double y, const Font& font, PlotAlign align) {
  use(font);
  cairo_move_to(context_, start_of(words, x, font, align), y);
  cairo_text_path(context_, words.c_str());
  stroke(4, Role::paper);
  text(words, x, y, font, align);
}

std::string Canvas::fit(const std::string& words, double width, const Font& font) {
  std::string fitted = words;
  for (std::size_t columns = display_width(words); columns > 8 && text_width(fitted, font) > width;) {
    columns -= columns / 16 + 1;
    fitted = tidemark::fit(words, columns);
  }
  return fitted;
}

void Canvas::fill(Role role, double opacity) {
  use(role, opacity);
  cairo_fill(context_);
}

void Canvas::stroke(double width, Role role) {
  use(role);
  cairo_set_line_width(context_, width);
  cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
  cairo_stroke(context_);
}

Result<std::string> draw_on_canvas(double width, ChartFormat format, const std::function<double(Canvas&)>& measure,
                                   const std::function<void(Canvas&)>& draw) {
  double height = 0;
  {
    const Surface nothing(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1), &cairo_surface_destroy);
    const Context context(cairo_create(nothing.get()), &cairo_destroy);
    Canvas canvas(context.get());
    height = measure(canvas);
  }
  std::string bytes;
  const bool png = format == ChartFormat::png;
  const Surface surface(png ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width * kScale),
                                                         static_cast<int>(height * kScale))
                            : cairo_svg_surface_create_for_stream(append, &bytes, width, height),
                        &cairo_surface_destroy);
  {
    const Context context(cairo_create(surface.get()), &cairo_destroy);
    if (png) cairo_scale(context.get(), kScale, kScale);
    Canvas canvas(context.get());
    canvas.fill_rectangle(0, 0, width, height, Role::paper);
    draw(canvas);
    if (const cairo_status_t status = cairo_status(context.get()); status != CAIRO_STATUS_SUCCESS) {
      return Error{fmt::format("the picture could not be drawn: {}", cairo_status_to_string(status))};
    }
  }
  cairo_status_t status = CAIRO_STATUS_SUCCESS;
  if (png) {
    status = cairo_surface_write_to_png_stream(surface.get(), append, &bytes);
  } else {
    cairo_surface_finish(surface.get());
    status = cairo_surface_status(surface.get());
  }
  if (status != CAIRO_STATUS_SUCCESS) {
    return Error{fmt::format("the picture could not be written: {}", cairo_status_to_string(status))};
  }
  return bytes;
}

}  // namespace tidemark
