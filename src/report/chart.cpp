#include "report/chart.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/units.h"
#include "report/chart_canvas.h"
#include "report/chart_panel.h"
#include "report/printable.h"
#include "report/text.h"

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

constexpr double kWidth = 1200;
constexpr double kHeader = 84;
constexpr double kFooter = 44;
constexpr double kLeft = 96;
constexpr double kRight = 36;
constexpr double kScale = 2;  // pixels per unit in a PNG: sharp on today's screens

cairo_status_t append(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

std::vector<ChartPanel> panels_of(std::span<const Timeline> timelines) {
  std::vector<ChartPanel> panels;
  for (const Timeline& timeline : timelines) {
    for (const TimelineSeries& series : timeline.series) {
      ChartPanel panel;
      panel.series = &series;
      panel.duration_ns = timeline.recording.duration_ns;
      panel.title = to_string(series.device);
      if (timelines.size() > 1) panel.title += "  \xC2\xB7  " + recording_title(timeline.recording);
      for (const TimelineOutOfMemory& failure : timeline.out_of_memory) {
        if (failure.device == series.device) panel.out_of_memory_ns.push_back(failure.time_ns);
      }
      panels.push_back(std::move(panel));
    }
  }
  return panels;
}

void draw_header(Canvas& canvas, std::span<const Timeline> timelines) {
  canvas.text("Memory over time", kLeft, 36, {22, true, colours::kInk});
  std::string what = "nothing recorded";
  if (!timelines.empty()) {
    const ProcessInfo& process = timelines.front().recording.process;
    what = printable(process.command_line);
    if (timelines.size() > 1) what += fmt::format("  ({} recordings)", timelines.size());
  }
  canvas.text(canvas.fit(what, kWidth - kLeft - kRight, {13, false, colours::kQuiet}), kLeft, 58,
              {13, false, colours::kQuiet});
}

void draw(Canvas& canvas, std::span<const Timeline> timelines, const std::vector<ChartPanel>& panels,
          double panel_height) {
  draw_header(canvas, timelines);
  std::uint64_t duration_ns = 1;
  for (const ChartPanel& panel : panels) duration_ns = std::max(duration_ns, panel.duration_ns);
  double top = kHeader;
  for (std::size_t index = 0; index < panels.size(); ++index) {
    const bool last = index + 1 == panels.size();
    draw_panel(canvas, panels[index], {kLeft, top, kWidth - kLeft - kRight, panel_height}, duration_ns, last);
    top += panel_height;
  }
  if (panels.empty()) canvas.text("No events.", kLeft, kHeader + 40, {15, false, colours::kInk});
}

}  // namespace

Result<std::string> draw_chart(std::span<const Timeline> timelines, ChartFormat format) {
  const std::vector<ChartPanel> panels = panels_of(timelines);
  if (panels.size() > kMaxPanels) {
    return Error{fmt::format("a chart of {} devices would be unreadable; draw at most {} at a time (--device)",
                             panels.size(), kMaxPanels)};
  }
  // A few panels get room; many share what is still legible.
  const double panel_height = panels.size() <= 1 ? 420 : panels.size() <= 4 ? 280 : 190;
  const double height = kHeader + panel_height * static_cast<double>(std::max<std::size_t>(panels.size(), 1)) + kFooter;
  std::string bytes;
  const bool png = format == ChartFormat::png;
  const Surface surface(png ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(kWidth * kScale),
                                                         static_cast<int>(height * kScale))
                            : cairo_svg_surface_create_for_stream(append, &bytes, kWidth, height),
                        &cairo_surface_destroy);
  {
    const Context context(cairo_create(surface.get()), &cairo_destroy);
    if (png) cairo_scale(context.get(), kScale, kScale);
    Canvas canvas(context.get());
    canvas.fill_rectangle(0, 0, kWidth, height, colours::kPaper);
    draw(canvas, timelines, panels, panel_height);
    if (const cairo_status_t status = cairo_status(context.get()); status != CAIRO_STATUS_SUCCESS) {
      return Error{fmt::format("the chart could not be drawn: {}", cairo_status_to_string(status))};
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
    return Error{fmt::format("the chart could not be written: {}", cairo_status_to_string(status))};
  }
  return bytes;
}

}  // namespace tidemark
