#include "query/words/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "query/words/printable.h"
#include "report/plot/layers.h"
#include "report/plot/plots.h"
#include "report/plot/time_plot.h"

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
  const std::vector<PlotLayer> layers = ledger_layers(device);
  const auto peak = std::max_element(
      device.points.begin(), device.points.end(),
      [](const LedgerPoint& left, const LedgerPoint& right) { return left.used_bytes < right.used_bytes; });
  TimePlot time({std::max(frame.duration_ns, device.points.back().time_ns), frame.height, frame.names_times},
                std::max(peak->used_bytes, highest_bytes(layers)));
  Plot& plot = time.plot();
  plot.description = fmt::format("All memory of {} over time, by owner", printable(device.device));
  add_layers(time, device.points, layers);
  time.add_curve(Role::ink, 1.6, 0, device.points, [](const LedgerPoint& point) { return point.used_bytes; });
  PlotKey& used = plot.legend.emplace_back();
  used.role = Role::ink;
  used.sample = Sample::line;
  used.words = "used, as reported by the driver (above the layers: unexplained)";
  time.add_hints(device.points, [&](std::size_t index) {
    std::vector<std::string> words = layer_words(layers, index);
    words.insert(words.begin(), "used " + format_bytes(device.points[index].used_bytes));
    return words;
  });
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
