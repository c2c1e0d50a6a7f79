// A picture: plots below each other, under one title, and the few strokes that it is made of, over cairo.
#pragma once

#include <cairo.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/chart/chart.h"
#include "report/plot/plot.h"

namespace tidemark {

struct PicturePanel {
  std::string title;
  Plot plot;
};

/// All texts are printable.
struct Picture {
  std::string title;
  std::string recordings;  ///< what it is a picture of
  std::vector<PicturePanel> panels;
  std::string nothing;  ///< said where there are no panels
  std::string x_axis;   ///< what runs from left to right; may be empty
};

/// An error where there are more than kMaxPanels.
[[nodiscard]] Result<void> check_panel_count(std::size_t panels);

/// The file's bytes. Keys that all panels share are at the top, others below the panel's title. Fails when cairo does.
[[nodiscard]] Result<std::string> draw_picture(const Picture& picture, ChartFormat format);

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
  /// Where words begin.
  [[nodiscard]] double start_of(const std::string& words, double x, const Font& font, PlotAlign align);

  cairo_t* context_;
};

/// Calls `measure` with a canvas that shows nothing, for the height of a picture, and `draw` with a white one of
/// `width` by that height in units (a PNG has two pixels for each). Returns the file's bytes, or an error when cairo
/// fails.
Result<std::string> draw_on_canvas(double width, ChartFormat format, const std::function<double(Canvas&)>& measure,
                                   const std::function<void(Canvas&)>& draw);

}  // namespace tidemark
