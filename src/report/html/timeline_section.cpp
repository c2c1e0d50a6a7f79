#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/units.h"
#include "report/axis.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/html/sections.h"
#include "report/text_parts.h"

namespace tidemark::html {
namespace {

constexpr double kTop = 26;        // room above the plot, for the peak's label
constexpr double kHeight = 250;    // of the plot
constexpr double kBottom = 26;     // room below, for the times
constexpr double kUnits = 10'000;  // of the stretched drawing inside
constexpr std::size_t kHints = 120;

// One device's curves.
class Drawing {
 public:
  Drawing(std::string& out, const TimelineSeries& series, std::uint64_t duration_ns)
      : out_(out),
        series_(series),
        duration_ns_(static_cast<double>(std::max<std::uint64_t>(duration_ns, 1))),
        ticks_(byte_ticks(std::max(series.peak_allocated_bytes,
                                   series.peak_reserved_bytes.value_or(series.peak_active_bytes.value_or(0))))) {}

  void open() {
    std::vector<MarginLabel> margin;
    margin.reserve(ticks_.size());
    for (const Tick& tick : ticks_) margin.push_back({y(tick.value) + 4, tick.label});
    open_plot(out_, "time",
              fmt::format("Memory of {} over time: peak allocated {} {}", to_string(series_.device),
                          format_bytes(series_.peak_allocated_bytes), at_text(series_.peak_allocated_at_ns)),
              kTop + kHeight + kBottom, margin);
    for (const Tick& tick : ticks_) {
      add("<line class=\"grid\" x2=\"100%\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", y(tick.value));
    }
    const std::vector<Tick> times = time_ticks(static_cast<std::uint64_t>(duration_ns_));
    for (std::size_t index = 0; index < times.size(); ++index) {
      const double at = times[index].value / duration_ns_;
      add("<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"{1:g}\" y2=\"{2:g}\"/>", percent(at), kTop + kHeight,
          kTop + kHeight + 4);
      add("<text class=\"tick{}\" x=\"{}\" y=\"{:g}\"{}>{}</text>\n", index % 2 == 1 ? " odd" : "", percent(at),
          kTop + kHeight + 18,
          at > 0.96   ? " text-anchor=\"end\""
          : at < 0.02 ? " text-anchor=\"start\""
                      : "",
          times[index].label);
    }
  }

  void curves() {
    if (series_.points.empty()) return;
    add("<svg y=\"{:g}\" width=\"100%\" height=\"{:g}\" viewBox=\"0 0 {:g} {:g}\" preserveAspectRatio=\"none\">", kTop,
        kHeight, kUnits, kUnits);
    const auto allocated = [](const TimelinePoint& point) { return std::optional(point.allocated_bytes); };
    const std::string curve = steps(allocated);
    add("<path class=\"allocated area\" d=\"{}V{:g}H{:g}Z\"/>", curve, kUnits, first());
    add("<path class=\"allocated\" d=\"{}\"/>", curve);
    if (series_.active_differs()) {
      add("<path class=\"active\" d=\"{}\"/>", steps([](const TimelinePoint& point) { return point.active_bytes; }));
    }
    if (series_.peak_reserved_bytes) {
      add("<path class=\"reserved\" d=\"{}\"/>",
          steps([](const TimelinePoint& point) { return point.reserved_bytes; }));
    }
    out_ += "</svg>\n";
  }

  // What a pointer that rests there is told.
  void hints() {
    std::size_t next = 0;
    for (std::size_t index = 0; index < kHints; ++index) {
      const double middle = (static_cast<double>(index) + 0.5) / kHints * duration_ns_;
      while (next < series_.points.size() && static_cast<double>(series_.points[next].time_ns) <= middle) ++next;
      if (next == 0) continue;  // nothing is known before the first event
      const TimelinePoint& point = series_.points[next - 1];
      add("<rect class=\"hint\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\"><title>{}\nallocated {}",
          percent(static_cast<double>(index) / kHints), kTop, percent(1.0 / kHints), kHeight,
          format_duration_ns(static_cast<std::uint64_t>(middle)), format_bytes(point.allocated_bytes));
      if (point.active_bytes) add("\nactive {}", format_bytes(*point.active_bytes));
      if (point.reserved_bytes) add("\nreserved {}", format_bytes(*point.reserved_bytes));
      out_ += "</title></rect>";
    }
    out_ += "\n";
  }

  void failure(const TimelineOutOfMemory& event) {
    const double at = static_cast<double>(event.time_ns) / duration_ns_;
    add("<g class=\"alarm\"><title>out of memory {0}: {1} requested</title>"
        "<line x1=\"{2}\" x2=\"{2}\" y1=\"{3:g}\" y2=\"{4:g}\"/><circle cx=\"{2}\" cy=\"{3:g}\" r=\"4\"/></g>\n",
        at_text(event.time_ns), format_bytes(event.requested_bytes), percent(at), kTop, kTop + kHeight);
  }

  void peak() {
    if (!series_.peak_allocated_at_ns) return;
    const double at = static_cast<double>(*series_.peak_allocated_at_ns) / duration_ns_;
    const double height = y(static_cast<double>(series_.peak_allocated_bytes));
    add("<circle class=\"peak\" cx=\"{}\" cy=\"{:.1f}\" r=\"4.5\"/>", percent(at), height);
    const char* anchor = at < 0.2 ? "start" : at > 0.8 ? "end" : "middle";
    add("<text class=\"peak\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"{}\">peak {} at {}</text>\n", percent(at),
        height - 10, anchor, format_bytes(series_.peak_allocated_bytes),
        format_duration_ns(*series_.peak_allocated_at_ns));
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  [[nodiscard]] double y(double bytes) const {
    return kTop + kHeight * (1 - bytes / std::max(ticks_.back().value, 1.0));
  }
  [[nodiscard]] double x_units(const TimelinePoint& point) const {
    return static_cast<double>(point.time_ns) / duration_ns_ * kUnits;
  }
  [[nodiscard]] double first() const { return x_units(series_.points.front()); }

  // A value holds until the next point; where it is not known the curve is broken.
  template <typename Value>
  std::string steps(const Value& value) const {
    std::string path;
    bool drawing = false;
    for (const TimelinePoint& point : series_.points) {
      const double at = x_units(point);
      const std::optional<std::uint64_t> bytes = value(point);
      if (drawing) fmt::format_to(std::back_inserter(path), "H{:.0f}", at);
      if (bytes) {
        const double height = kUnits * (1 - static_cast<double>(*bytes) / std::max(ticks_.back().value, 1.0));
        if (!drawing) fmt::format_to(std::back_inserter(path), "M{:.0f} {:.0f}", at, height);
        if (drawing) fmt::format_to(std::back_inserter(path), "V{:.0f}", height);
      }
      drawing = bytes.has_value();
    }
    return path;
  }

  std::string& out_;
  const TimelineSeries& series_;
  const double duration_ns_;
  const std::vector<Tick> ticks_;
};

void add_series(std::string& out, const Timeline& timeline, const TimelineSeries& series) {
  add_device_heading(out, series.device);
  const auto fails = [&](const TimelineOutOfMemory& event) { return event.device == series.device; };
  std::vector<Key> keys = {{"allocated", "allocated"}};
  if (series.active_differs()) keys.push_back({"active line", "active: allocated, or given back but still in use"});
  if (series.peak_reserved_bytes) keys.push_back({"reserved line", "reserved"});
  if (std::any_of(timeline.out_of_memory.begin(), timeline.out_of_memory.end(), fails)) {
    keys.push_back({"alarm line", "out of memory"});
  }
  add_legend(out, keys);
  Drawing drawing(out, series, timeline.recording.duration_ns);
  drawing.open();
  drawing.curves();
  drawing.hints();
  for (const TimelineOutOfMemory& event : timeline.out_of_memory) {
    if (fails(event)) drawing.failure(event);
  }
  drawing.peak();
  out += kPlotEnd;
}

}  // namespace

void add_timeline(std::string& out, const Report& report, const std::string& id) {
  if (report.timeline.series.empty()) return;
  open_section(out, id + "timeline", "Memory over time",
               "Time since the recording began. Every peak is drawn at its exact height, however short it was.");
  for (const TimelineSeries& series : report.timeline.series) add_series(out, report.timeline, series);
  out += kSectionEnd;
}

}  // namespace tidemark::html
