#include "report/words/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "report/plot/ledger_layers.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

using Sample = PlotKey::Sample;

constexpr double kBarHeight = 26;

Role role_of(const LedgerLine& line, const LedgerDevice& device) {
  switch (line.part) {
    case LedgerPart::pytorch:
      return Role::allocated;
    case LedgerPart::library:
      return library_role(device, line.name);
    case LedgerPart::context:
      return Role::context;
    case LedgerPart::process:
      break;
  }
  return Role::processes;
}

std::vector<std::string> hint_words(const std::vector<LedgerLayer>& layers, const LedgerPoint& point,
                                    std::size_t index) {
  std::vector<std::string> words = {"used " + format_bytes(point.used_bytes)};
  std::uint64_t below = 0;
  for (const LedgerLayer& layer : layers) {
    words.push_back(layer.words + " " + format_bytes(layer.top[index] - below));
    below = layer.top[index];
  }
  return words;
}

class Bar {
 public:
  explicit Bar(std::uint64_t whole) : whole_(static_cast<double>(std::max<std::uint64_t>(whole, 1))) {
    plot_.height = kBarHeight + 2;
    plot_.frame_top = 1;
    plot_.frame_height = kBarHeight;
  }

  void add(Role role, std::uint64_t bytes, const std::string& words, bool dashed = false) {
    if (bytes == 0) return;
    plot_.boxes.push_back({role,
                           share(at_),
                           share(bytes),
                           plot_.frame_top,
                           kBarHeight,
                           {words + ": " + format_bytes(bytes)},
                           {},
                           dashed});
    at_ += bytes;
  }

  [[nodiscard]] Plot take(std::string description) {
    plot_.description = std::move(description);
    return std::move(plot_);
  }

 private:
  [[nodiscard]] double share(std::uint64_t bytes) const { return static_cast<double>(bytes) / whole_; }

  Plot plot_;
  double whole_;
  std::uint64_t at_ = 0;
};

}  // namespace

Plot ledger_plot(const LedgerDevice& device, const TimeFrame& frame) {
  const std::vector<LedgerLayer> layers = ledger_layers(device);
  TimePlot time({std::max(frame.duration_ns, device.points.back().time_ns), frame.height, frame.names_times},
                highest_bytes(device, layers));
  Plot& plot = time.plot();
  plot.description = fmt::format("All memory of {} over time, by owner", printable(device.device));
  const LedgerPoint* const first = device.points.data();
  // From the highest to the lowest: each covers the part of the one before that lies below its top.
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    time.add_curve(layer->role, 0, 1, device.points,
                   [&](const LedgerPoint& point) { return layer->top[static_cast<std::size_t>(&point - first)]; });
  }
  time.add_curve(Role::ink, 1.6, 0, device.points, [](const LedgerPoint& point) { return point.used_bytes; });
  for (const LedgerLayer& layer : layers) plot.legend.push_back({layer.role, Sample::box, layer.words});
  PlotKey& used = plot.legend.emplace_back();
  used.role = Role::ink;
  used.sample = Sample::line;
  used.words = "used, as reported by the driver (above the layers: unexplained)";
  time.add_hints(device.points, [&](std::size_t index) { return hint_words(layers, device.points[index], index); });
  const auto peak = std::max_element(
      device.points.begin(), device.points.end(),
      [](const LedgerPoint& left, const LedgerPoint& right) { return left.used_bytes < right.used_bytes; });
  time.label_peak(Role::ink, peak->time_ns, peak->used_bytes);
  return time.take();
}

Plot ledger_bar(const LedgerDevice& device) {
  const LedgerBreakdown& ledger = device.breakdown;
  const std::int64_t unexplained = ledger.unexplained_bytes.value_or(0);
  Bar bar(*ledger.used_bytes + (unexplained < 0 ? 0 - static_cast<std::uint64_t>(unexplained) : 0));
  for (const LedgerLine& line : ledger.lines) {
    if (line.part == LedgerPart::pytorch) {
      bar.add(Role::allocated, ledger.allocated_bytes.value_or(0), "allocated by PyTorch");
      bar.add(Role::cached, ledger.cached_bytes.value_or(0), "cached by PyTorch");
    } else {
      bar.add(role_of(line, device), line.bytes.value_or(0), line_words(line, ledger));
    }
  }
  if (unexplained > 0) bar.add(Role::unexplained, static_cast<std::uint64_t>(unexplained), "unexplained", true);
  return bar.take(fmt::format("Used memory of {}, by owner", printable(device.device)));
}

}  // namespace tidemark
