#include "report/html/time_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"
#include "report/html/markup.h"
#include "report/html/plot.h"

namespace tidemark::html {
namespace {

constexpr double kTop = 26;        // room above the plot, for the peak's label
constexpr double kHeight = 250;    // of the plot
constexpr double kBottom = 26;     // room below, for the times
constexpr double kUnits = 10'000;  // of the stretched drawing inside
constexpr std::size_t kHints = 120;

template <typename... Values>
void add(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
}

}  // namespace

TimePlot::TimePlot(std::string& out, std::uint64_t duration_ns, std::uint64_t highest)
    : out_(out),
      duration_ns_(static_cast<double>(std::max<std::uint64_t>(duration_ns, 1))),
      ticks_(byte_ticks(highest)) {}

double TimePlot::y(double bytes) const {
  return kTop + kHeight * (1 - bytes / std::max(ticks_.back().value, 1.0));
}

void TimePlot::open(std::string_view name) {
  std::vector<MarginLabel> margin;
  margin.reserve(ticks_.size());
  for (const Tick& tick : ticks_) margin.push_back({y(tick.value) + 4, tick.label});
  open_plot(out_, "time", name, kTop + kHeight + kBottom, margin);
  for (const Tick& tick : ticks_) {
    add(out_, "<line class=\"grid\" x2=\"100%\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", y(tick.value));
  }
  const std::vector<Tick> times = time_ticks(static_cast<std::uint64_t>(duration_ns_));
  for (std::size_t index = 0; index < times.size(); ++index) {
    const double at = times[index].value / duration_ns_;
    add(out_, "<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"{1:g}\" y2=\"{2:g}\"/>", percent(at), kTop + kHeight,
        kTop + kHeight + 4);
    add(out_, "<text class=\"tick{}\" x=\"{}\" y=\"{:g}\"{}>{}</text>\n", index % 2 == 1 ? " odd" : "", percent(at),
        kTop + kHeight + 18,
        at > 0.96   ? " text-anchor=\"end\""
        : at < 0.02 ? " text-anchor=\"start\""
                    : "",
        times[index].label);
  }
}

void TimePlot::close() {
  out_ += kPlotEnd;
}

void TimePlot::open_curves() {
  add(out_, "<svg y=\"{:g}\" width=\"100%\" height=\"{:g}\" viewBox=\"0 0 {:g} {:g}\" preserveAspectRatio=\"none\">",
      kTop, kHeight, kUnits, kUnits);
}

void TimePlot::close_curves() {
  out_ += "</svg>\n";
}

void TimePlot::line(std::string_view style, std::string_view curve) {
  add(out_, "<path class=\"{}\" d=\"{}\"/>", style, curve);
}

void TimePlot::area(std::string_view style, std::string_view curve, std::uint64_t first_ns) {
  add(out_, "<path class=\"{}\" d=\"{}V{:g}H{:g}Z\"/>", style, curve, kUnits, share(first_ns) * kUnits);
}

void TimePlot::hints(const std::vector<std::uint64_t>& times_ns, const std::function<std::string(std::size_t)>& words) {
  std::size_t next = 0;
  for (std::size_t index = 0; index < kHints; ++index) {
    const double middle = (static_cast<double>(index) + 0.5) / kHints * duration_ns_;
    while (next < times_ns.size() && static_cast<double>(times_ns[next]) <= middle) ++next;
    if (next == 0) continue;
    add(out_, "<rect class=\"hint\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\"><title>{}{}</title></rect>",
        percent(static_cast<double>(index) / kHints), kTop, percent(1.0 / kHints), kHeight,
        format_duration_ns(static_cast<std::uint64_t>(middle)), words(next - 1));
  }
  out_ += "\n";
}

void TimePlot::label_point(std::uint64_t time_ns, std::uint64_t bytes, std::string_view words) {
  const double at = share(time_ns);
  const double height = y(static_cast<double>(bytes));
  add(out_, "<circle class=\"peak\" cx=\"{}\" cy=\"{:.1f}\" r=\"4.5\"/>", percent(at), height);
  const char* anchor = at < 0.2 ? "start" : at > 0.8 ? "end" : "middle";
  add(out_, "<text class=\"peak\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", percent(at), height - 10,
      anchor, words);
}

void TimePlot::failure(std::uint64_t time_ns, std::string_view words) {
  add(out_,
      "<g class=\"alarm\"><title>{0}</title>"
      "<line x1=\"{1}\" x2=\"{1}\" y1=\"{2:g}\" y2=\"{3:g}\"/><circle cx=\"{1}\" cy=\"{2:g}\" r=\"4\"/></g>\n",
      words, percent(share(time_ns)), kTop, kTop + kHeight);
}

void TimePlot::go_right(std::string& path, std::uint64_t time_ns) const {
  add(path, "H{:.0f}", share(time_ns) * kUnits);
}

void TimePlot::go_to(std::string& path, bool drawing, std::uint64_t time_ns, std::uint64_t bytes) const {
  const double height = kUnits * (1 - static_cast<double>(bytes) / std::max(ticks_.back().value, 1.0));
  if (drawing) {
    add(path, "V{:.0f}", height);
  } else {
    add(path, "M{:.0f} {:.0f}", share(time_ns) * kUnits, height);
  }
}

}  // namespace tidemark::html
