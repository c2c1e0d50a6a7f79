#include "report/chart/surface.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>

#include <memory>

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

Result<std::string> draw_picture(double width, double height, ChartFormat format,
                                 const std::function<void(Canvas&)>& draw) {
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
    canvas.fill_rectangle(0, 0, width, height, colours::kPaper);
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
