// A plot as shapes with a place, a size and a role: laid out once, then drawn by a backend that is independent of
// memory analysis. chart/ draws with cairo, html/ writes SVG elements.
//
// Along x, lengths are shares of the plot's width, from 0 to 1, so that it fits every page. Along y they are pixels of
// a page, from the top; a picture has as many units. Text is printable and plain; a backend escapes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/plot/palette.h"

namespace tidemark {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

/// Horizontal alignment of a text at its place.
enum class PlotAlign : std::uint8_t { start, middle, end };

/// A text beside an axis. `at` is along that axis; beside the y-axis, of the middle of the letters.
struct PlotTick {
  double at = 0;
  std::string label;  ///< may be empty
  PlotAlign align = PlotAlign::middle;
};

/// Steps, in which a value holds until the next point, or straight lines between points. A run ends at an unknown
/// value, or with the last point.
struct PlotCurve {
  Role role = Role::ink;
  double thickness = 0;     ///< of the line; 0 = none
  double fill_opacity = 0;  ///< of the area below it; 0 = none
  std::vector<std::vector<PlotPoint>> runs;
  bool straight = false;
};

struct PlotBox {
  Role role = Role::ink;
  double x = 0;
  double width = 0;
  double y = 0;
  double height = 0;
  std::vector<std::string> tooltip;  ///< lines
  std::vector<std::string> label;    ///< parts of one text in it; the last ones are left out if there is no room
  bool dashed = false;               ///< outlined: an unknown part

  /// Too narrow for a line of paper between it and its neighbours.
  [[nodiscard]] bool narrow() const { return width <= 0.004; }
};

/// A line from the top of the frame to its bottom, with a dot.
struct PlotMark {
  Role role = Role::alarm;
  double x = 0;
  std::vector<std::string> tooltip;
};

/// A dot with words above it.
struct PlotLabel {
  Role role = Role::ink;
  PlotPoint at;
  std::string words;
  PlotAlign align = PlotAlign::middle;
};

/// Text shown while the pointer is in this part of the frame.
struct PlotHint {
  double x = 0;
  double width = 0;
  std::vector<std::string> tooltip;
};

/// A sample of a colour and its meaning.
struct PlotKey {
  enum class Sample : std::uint8_t { box, line, area };
  Role role = Role::ink;
  Sample sample = Sample::box;
  std::string words;

  friend bool operator==(const PlotKey&, const PlotKey&) = default;
};

/// Drawn in this order: grid and ticks, curves, boxes, hints, marks, label.
struct Plot {
  std::string description;  ///< text alternative for screen readers
  double height = 0;        ///< of everything
  double frame_top = 0;     ///< of the frame that curves and marks fill
  double frame_height = 0;
  std::vector<PlotTick> margin;  ///< at the left of the plot
  bool grid = false;             ///< a line through the frame at each of them that is beside it
  std::vector<PlotTick> ticks;   ///< below the frame
  std::vector<PlotCurve> curves;
  std::vector<PlotBox> boxes;
  std::vector<PlotHint> hints;
  std::vector<PlotMark> marks;
  std::optional<PlotLabel> label;
  std::vector<PlotKey> legend;
  std::string remark;  ///< parts that are not drawn; may be empty

  [[nodiscard]] double frame_bottom() const { return frame_top + frame_height; }
  /// Whether a box has this role.
  [[nodiscard]] bool has_box(Role role) const {
    return std::any_of(boxes.begin(), boxes.end(), [role](const PlotBox& box) { return box.role == role; });
  }
};

/// Measures that backends share, in units along y.
namespace plot_layout {
inline constexpr double kBaseline = 4;        ///< of letters, below their middle
inline constexpr double kMarginGap = 8;       ///< between the margin's words and the plot
inline constexpr double kTickLength = 4;      ///< below the frame
inline constexpr double kTickBaseline = 18;   ///< of a tick's label, below the frame
inline constexpr double kLabelBaseline = 10;  ///< of a label, above its dot
inline constexpr double kDot = 4.5;           ///< radius
inline constexpr double kAreaOpacity = 0.28;
}  // namespace plot_layout

}  // namespace tidemark
