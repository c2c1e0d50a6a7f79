// A plot of bytes over time that fits every width.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart/axis.h"

namespace tidemark::html {

/// Appends to a page in this order: open(), curves between open_curves() and close_curves(), hints, marks, close().
class TimePlot {
 public:
  /// The time axis spans `duration_ns`, the other one `highest` bytes.
  TimePlot(std::string& out, std::uint64_t duration_ns, std::uint64_t highest);

  /// Margin, grid and times. `name` says what the plot shows to those who do not see it, as HTML.
  void open(std::string_view name);
  void close();
  void open_curves();
  void close_curves();
  /// A path along `curve`, which steps() made, within the curves. `style`: its classes.
  void line(std::string_view style, std::string_view curve);
  /// The area below it, from `first` to the last point.
  void area(std::string_view style, std::string_view curve, std::uint64_t first_ns);

  /// Rectangles that tell a pointer that rests there what `words` gives for the point that holds then, as HTML; each
  /// begins with the time. Nothing before the first of the points, whose times are `times_ns`.
  void hints(const std::vector<std::uint64_t>& times_ns, const std::function<std::string(std::size_t)>& words);

  /// A dot with words above it, as HTML.
  void label_point(std::uint64_t time_ns, std::uint64_t bytes, std::string_view words);

  /// A line from top to bottom with a dot; `words` as HTML.
  void failure(std::uint64_t time_ns, std::string_view words);

  /// Path data: a value holds until the next point; where it is not known the curve is broken.
  template <typename Point, typename Value>
  [[nodiscard]] std::string steps(const std::vector<Point>& points, const Value& value) const {
    std::string path;
    bool drawing = false;
    for (const Point& point : points) {
      const std::optional<std::uint64_t> bytes = value(point);
      if (drawing) go_right(path, point.time_ns);
      if (bytes) go_to(path, drawing, point.time_ns, *bytes);
      drawing = bytes.has_value();
    }
    return path;
  }

 private:
  [[nodiscard]] double y(double bytes) const;
  [[nodiscard]] double share(std::uint64_t time_ns) const { return static_cast<double>(time_ns) / duration_ns_; }
  void go_right(std::string& path, std::uint64_t time_ns) const;
  void go_to(std::string& path, bool drawing, std::uint64_t time_ns, std::uint64_t bytes) const;

  std::string& out_;
  const double duration_ns_;
  const std::vector<Tick> ticks_;
};

}  // namespace tidemark::html
