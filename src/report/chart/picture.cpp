#include "report/chart/picture.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "query/words/printable.h"
#include "report/chart/chart.h"
#include "report/plot/plot.h"

#ifdef __has_feature
#define TIDEMARK_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TIDEMARK_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TIDEMARK_HAS_FEATURE(address_sanitizer)
// Called by the leak checker in the program. Fonts of cairo stay in fontconfig's cache, which the program does not own.
extern "C" const char* __lsan_default_suppressions();  // NOLINT
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfontconfig.so\n";
}  // NOLINT
#endif

namespace tidemark {
namespace {

struct Font {
  double size;
  bool bold;
  Role role;
};

/// Not thread-safe; borrows the cairo context.
class Canvas {
 public:
  explicit Canvas(cairo_t* context) : context_(context) {}

  void fill_rectangle(double left, double top, double width, double height, Role role, double opacity = 1);
  void line(double x0, double y0, double x1, double y1, double width, Role role);
  void dot(double x, double y, double radius, Role role);
  /// `y` is the baseline.
  void text(const std::string& words, double x, double y, const Font& font, PlotAlign align = PlotAlign::start);
  /// The same on an outline of paper, over whatever is drawn there.
  void outlined_text(const std::string& words, double x, double y, const Font& font, PlotAlign align);
  [[nodiscard]] double text_width(const std::string& words, const Font& font);
  /// Shortens to at most `width`.
  [[nodiscard]] std::string fit(const std::string& words, double width, const Font& font);

  /// A path under construction: move, then lines, then fill or stroke.
  void move_to(double x, double y) { cairo_move_to(context_, x, y); }
  void line_to(double x, double y) { cairo_line_to(context_, x, y); }
  void fill(Role role, double opacity);
  void stroke(double width, Role role);

 private:
  void use(const Font& font);
  void use(Role role, double opacity = 1);
  /// Left end of aligned text.
  [[nodiscard]] double start_of(const std::string& words, double x, const Font& font, PlotAlign align);

  cairo_t* context_;
};

constexpr double kScale = 2;  // pixels per unit in a PNG: sharp on today's screens

cairo_status_t append(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

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

// Calls `measure` with a canvas that shows nothing, for the height of a picture, and `draw` with a white one of
// `width` by that height in units (a PNG has two pixels for each). Returns the file's bytes, or an error when cairo
// fails.
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

constexpr double kWidth = 1200;
constexpr double kLeft = 110;
constexpr double kRight = 36;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kHeader = 62;      // title
constexpr double kPanelTitle = 34;  // above a panel's legend and plot
constexpr double kLegendLine = 22;
constexpr double kRemark = 18;
constexpr double kGap = 20;     // below a panel
constexpr double kFooter = 30;  // the name of the x-axis
constexpr Font kSmall = {12, false, Role::quiet};
constexpr Font kText = {13, false, Role::ink};

// Draws a plot with its top left corner at (kLeft, top).
class PlotDrawing {
 public:
  PlotDrawing(Canvas& canvas, const Plot& plot, double top) : canvas_(canvas), plot_(plot), top_(top) {}

  void draw() {
    axes();
    for (const PlotCurve& curve : plot_.curves) {
      for (const std::vector<PlotPoint>& run : curve.runs) draw_run(curve, run);
    }
    for (const PlotBox& box : plot_.boxes) {
      // A thin gap between neighbours, if there is room for it.
      canvas_.fill_rectangle(x(box.x), y(box.y), box.width * kPlotWidth - (box.narrow() ? 0 : 0.7), box.height,
                             box.role);
      draw_words_in(box);
    }
    for (const PlotMark& mark : plot_.marks) {
      canvas_.line(x(mark.x), y(plot_.frame_top), x(mark.x), y(plot_.frame_bottom()), 1.6, mark.role);
      canvas_.dot(x(mark.x), y(plot_.frame_top), 4, mark.role);
    }
    if (plot_.label) draw_label(*plot_.label);
  }

 private:
  static double x(double share) { return kLeft + kPlotWidth * share; }
  [[nodiscard]] double y(double units) const { return top_ + units; }

  void axes() {
    for (const PlotTick& tick : plot_.margin) {
      if (plot_.grid && tick.at >= plot_.frame_top) canvas_.line(x(0), y(tick.at), x(1), y(tick.at), 1, Role::rule);
      const std::string label = canvas_.fit(tick.label, kLeft - plot_layout::kMarginGap - 4, kSmall);
      canvas_.text(label, x(0) - plot_layout::kMarginGap, y(tick.at) + plot_layout::kBaseline, kSmall, PlotAlign::end);
    }
    const double bottom = y(plot_.frame_bottom());
    for (const PlotTick& tick : plot_.ticks) {
      canvas_.line(x(tick.at), bottom, x(tick.at), bottom + plot_layout::kTickLength, 1, Role::quiet);
      canvas_.text(tick.label, x(tick.at), bottom + plot_layout::kTickBaseline, kSmall, tick.align);
    }
  }

  void trace(const std::vector<PlotPoint>& run, bool straight) {
    canvas_.move_to(x(run.front().x), y(run.front().y));
    double height = run.front().y;
    for (const PlotPoint& point : run) {
      if (!straight) canvas_.line_to(x(point.x), y(height));
      canvas_.line_to(x(point.x), y(point.y));
      height = point.y;
    }
  }

  void draw_run(const PlotCurve& curve, const std::vector<PlotPoint>& run) {
    if (curve.fill_opacity > 0) {
      trace(run, curve.straight);
      canvas_.line_to(x(run.back().x), y(plot_.frame_bottom()));
      canvas_.line_to(x(run.front().x), y(plot_.frame_bottom()));
      canvas_.fill(curve.role, curve.fill_opacity);
    }
    if (curve.thickness > 0) {
      trace(run, curve.straight);
      canvas_.stroke(curve.thickness, curve.role);
    }
  }

  // The first part of a box's label, if there is room for it.
  void draw_words_in(const PlotBox& box) {
    if (box.label.empty()) return;
    const double width = box.width * kPlotWidth;
    if (canvas_.text_width(box.label.front(), kText) + 6 > width) return;
    Font font = kText;
    font.role = text_role_on(box.role);
    canvas_.text(box.label.front(), x(box.x) + width / 2, y(box.y + box.height / 2) + plot_layout::kBaseline + 1, font,
                 PlotAlign::middle);
  }

  void draw_label(const PlotLabel& label) {
    canvas_.dot(x(label.at.x), y(label.at.y), plot_layout::kDot + 1.5, Role::paper);
    canvas_.dot(x(label.at.x), y(label.at.y), plot_layout::kDot, label.role);
    canvas_.outlined_text(label.words, x(label.at.x), y(label.at.y) - plot_layout::kLabelBaseline,
                          {13, true, Role::ink}, label.align);
  }

  Canvas& canvas_;
  const Plot& plot_;
  const double top_;
};

// Draws keys beside each other from `baseline` on, in as many lines as necessary; returns their number. If `shows` is
// false it only counts.
std::size_t draw_legend(Canvas& canvas, const std::vector<PlotKey>& legend, double baseline, bool shows) {
  constexpr double kSample = 18;
  if (legend.empty()) return 0;
  std::size_t lines = 1;
  double at = kLeft;
  for (const PlotKey& key : legend) {
    const double width = kSample + 7 + canvas.text_width(key.words, kText);
    if (at > kLeft && at + width > kLeft + kPlotWidth) {
      at = kLeft;
      baseline += kLegendLine;
      ++lines;
    }
    if (shows) {
      const bool line = key.sample == PlotKey::Sample::line;
      const bool area = key.sample == PlotKey::Sample::area;
      canvas.fill_rectangle(at, baseline - (line ? 6 : 10), kSample, line ? 3 : 11, key.role,
                            area ? plot_layout::kAreaOpacity : 1);
      if (area) canvas.fill_rectangle(at, baseline - 10, kSample, 2, key.role);
      canvas.text(key.words, at + kSample + 7, baseline, kText);
    }
    at += width + 24;
  }
  return lines;
}

class PictureDrawing {
 public:
  explicit PictureDrawing(const Picture& picture) : picture_(picture) {
    const std::vector<PicturePanel>& panels = picture.panels;
    const auto differs = [&](const PicturePanel& panel) { return panel.plot.legend != panels.front().plot.legend; };
    if (!panels.empty() && std::none_of(panels.begin(), panels.end(), differs)) shared_ = panels.front().plot.legend;
  }

  // Lays out the picture from top to bottom and returns its height; draws only if `shows`.
  double run(Canvas& canvas, bool shows) {
    canvas_ = &canvas;
    shows_ = shows;
    if (shows) header();
    top_ = kHeader + static_cast<double>(draw_legend(canvas, shared_, 59, shows)) * kLegendLine;
    for (const PicturePanel& panel : picture_.panels) add_panel(panel);
    if (picture_.panels.empty()) {
      if (shows) canvas.text(picture_.nothing, kLeft, top_ + 40, {15, false, Role::ink});
      top_ += 80;
    } else if (!picture_.x_axis.empty()) {
      if (shows) canvas.text(picture_.x_axis, kLeft + kPlotWidth / 2, top_, kSmall, PlotAlign::middle);
      top_ += kFooter;
    }
    return top_;
  }

 private:
  void header() {
    const Font font = {22, true, Role::ink};
    canvas_->text(picture_.title, kLeft, 36, font);
    const Font quiet = {13, false, Role::quiet};
    const double room = kPlotWidth - canvas_->text_width(picture_.title, font) - 40;
    canvas_->text(canvas_->fit(picture_.recordings, room, quiet), kWidth - kRight, 36, quiet, PlotAlign::end);
  }

  void add_panel(const PicturePanel& panel) {
    if (shows_) {
      const Font font = {15, true, Role::ink};
      canvas_->text(canvas_->fit(panel.title, kPlotWidth, font), kLeft, top_ + 18, font);
    }
    if (shared_.empty()) {
      top_ +=
          static_cast<double>(draw_legend(*canvas_, panel.plot.legend, top_ + 18 + kLegendLine, shows_)) * kLegendLine;
    }
    top_ += kPanelTitle;
    if (shows_) PlotDrawing(*canvas_, panel.plot, top_).draw();
    top_ += panel.plot.height;
    if (!panel.plot.remark.empty()) {
      if (shows_) canvas_->text(panel.plot.remark, kLeft, top_ + 12, kSmall);
      top_ += kRemark;
    }
    top_ += kGap;
  }

  const Picture& picture_;
  std::vector<PlotKey> shared_;
  Canvas* canvas_ = nullptr;
  bool shows_ = false;
  double top_ = 0;
};

}  // namespace

Result<void> check_panel_count(std::size_t panels) {
  if (panels <= kMaxPanels) return {};
  return Error{fmt::format("a picture of {} devices would be unreadable; draw at most {} at a time (--device)", panels,
                           kMaxPanels)};
}

Result<std::string> draw_picture(const Picture& picture, ChartFormat format) {
  PictureDrawing drawing(picture);
  return draw_on_canvas(
      kWidth, format, [&](Canvas& canvas) { return drawing.run(canvas, false); },
      [&](Canvas& canvas) { drawing.run(canvas, true); });
}

}  // namespace tidemark
