#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "query/words/printable.h"
#include "report/plot/axis.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

constexpr double kCurvesHeight = 260;
constexpr double kCurvesAbove = 12;   // the frame
constexpr double kCurvesBelow = 26;   // it: room for the values
constexpr double kAside = 0.02;       // of the width, left and right of the first and last value
constexpr std::size_t kMaxLines = 8;  // as many as there are colours

struct SweepPoint {
  double number = 0;
  double bytes = 0;
  bool measured = false;
};

// By the values of the other arguments ("seq=512 rank=8"), in the order of the rows.
std::vector<std::pair<std::string, std::vector<SweepPoint>>> lines_of(const Sweep& sweep, std::size_t argument) {
  std::vector<std::pair<std::string, std::vector<SweepPoint>>> lines;
  std::map<std::string, std::size_t> places;
  for (const SweepRow& row : sweep.rows) {
    const bool known = row.measured() || (row.prediction && row.prediction->peak_allocated_bytes);
    if (row.gpu != 0 || !known) continue;
    std::string others;
    for (std::size_t index = 0; index < row.values.size(); ++index) {
      if (index == argument) continue;
      others += fmt::format("{}{}={}", others.empty() ? "" : " ", sweep.arguments[index].name, row.values[index]);
    }
    const auto [place, added] = places.emplace(others, lines.size());
    if (added) lines.emplace_back(others, std::vector<SweepPoint>());
    const auto& bytes = row.measured() ? row.result->peak_allocated_bytes : row.prediction->peak_allocated_bytes;
    lines[place->second].second.push_back(
        {number_of(row.values[argument]).value_or(0), static_cast<double>(bytes.value_or(0)), row.measured()});
  }
  for (auto& [name, points] : lines) {
    std::sort(points.begin(), points.end(),
              [](const SweepPoint& a, const SweepPoint& b) { return a.number < b.number; });
  }
  return lines;
}

// The position of a value on the x-axis. Powers of two are equally far apart.
class ValueAxis {
 public:
  explicit ValueAxis(const std::vector<std::string>& values) {
    for (const std::string& value : values) numbers_.push_back(number_of(value).value_or(0));
    std::sort(numbers_.begin(), numbers_.end());
    logarithmic_ = numbers_.front() > 0 && numbers_.back() >= 16 * numbers_.front();
  }

  [[nodiscard]] double at(double number) const {
    const auto place = [this](double of) { return logarithmic_ ? std::log2(of) : of; };
    const double width = place(numbers_.back()) - place(numbers_.front());
    const double share = width > 0 ? (place(number) - place(numbers_.front())) / width : 0.5;
    return kAside + share * (1 - 2 * kAside);
  }

  // At the values themselves, as far as their labels have room.
  [[nodiscard]] std::vector<PlotTick> ticks() const {
    constexpr double kRoom = 0.05;
    std::vector<PlotTick> ticks;
    for (const double number : numbers_) {
      if (ticks.empty() || at(number) - ticks.back().at >= kRoom)
        ticks.push_back({at(number), fmt::format("{:g}", number)});
    }
    return ticks;
  }

 private:
  std::vector<double> numbers_;  // ascending
  bool logarithmic_ = false;
};

Role line_role(std::size_t index) {
  return static_cast<Role>(static_cast<std::size_t>(Role::site1) + index);
}

}  // namespace

Plot sweep_curves_plot(const Sweep& sweep, std::size_t argument) {
  constexpr double kSquare = 7;            // units
  constexpr double kSquareWidth = 0.0066;  // of the width: as many units in a picture
  auto lines = lines_of(sweep, argument);
  const ValueAxis axis(sweep.arguments[argument].values);
  double highest = 0;
  for (const auto& [name, points] : lines) {
    for (const SweepPoint& point : points) highest = std::max(highest, point.bytes);
  }
  const std::optional<std::uint64_t>& memory = sweep.gpus.front().memory_bytes;
  const bool shows_limit = memory && highest >= 0.4 * static_cast<double>(*memory);
  if (shows_limit) highest = std::max(highest, static_cast<double>(*memory));

  Plot plot;
  plot.description = "Peak allocated memory over " + shown(sweep.arguments[argument].name);
  plot.frame_top = kCurvesAbove;
  plot.frame_height = kCurvesHeight;
  plot.height = kCurvesAbove + kCurvesHeight + kCurvesBelow;
  plot.grid = true;
  const std::vector<Tick> bytes = byte_ticks(static_cast<std::uint64_t>(highest));
  const auto y = [&](double of) { return kCurvesAbove + kCurvesHeight * (1 - of / std::max(1.0, bytes.back().value)); };
  for (const Tick& tick : bytes) plot.margin.push_back({y(tick.value), tick.label});
  plot.ticks = axis.ticks();

  if (lines.size() > kMaxLines) {
    plot.remark = fmt::format("Not drawn: {} other combinations.", format_count(lines.size() - kMaxLines));
    lines.resize(kMaxLines);
  }
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const auto& [name, points] = lines[index];
    PlotCurve curve{line_role(index), 1.8, 0, {{}}, true};
    for (const SweepPoint& point : points) {
      const PlotPoint at{axis.at(point.number), y(point.bytes)};
      curve.runs.front().push_back(at);
      if (!point.measured) continue;
      plot.boxes.push_back({line_role(index),
                            at.x - kSquareWidth / 2,
                            kSquareWidth,
                            at.y - kSquare / 2,
                            kSquare,
                            {fmt::format("{} {:g}: {}", shown(sweep.arguments[argument].name), point.number,
                                         format_bytes(static_cast<std::uint64_t>(point.bytes)))},
                            {}});
    }
    plot.curves.push_back(std::move(curve));
    plot.legend.push_back({line_role(index), PlotKey::Sample::line, name.empty() ? "peak allocated" : shown(name)});
  }
  if (shows_limit) {
    const double limit = y(static_cast<double>(*memory));
    plot.curves.push_back({Role::alarm, 1.4, 0, {{{0, limit}, {1, limit}}}, true});
    plot.legend.push_back({Role::alarm, PlotKey::Sample::line,
                           fmt::format("memory of {}: {}", shown(sweep.gpus.front().name), format_bytes(*memory))});
  }
  return plot;
}

}  // namespace tidemark
