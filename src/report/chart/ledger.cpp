#include "report/words/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.h"
#include "report/chart/chart.h"
#include "report/chart/ledger_layers.h"
#include "report/chart/page.h"
#include "report/words/printable.h"
#include "report/words/recording.h"

namespace tidemark {
namespace {

constexpr double kTitle = 22;       // height of the title
constexpr double kLegendLine = 22;  // and of each line of the legend
constexpr double kLegendLines = 2;
constexpr double kAbove = 26;  // room for the peak's label
constexpr Font kLegend = {13, false, colours::kInk};

// By LayerColour. Hues after Okabe and Ito, so that colour-blind people tell them apart; greys are not the program's.
constexpr std::array<Colour, 10> kColours = {{{0.00, 0.45, 0.70},
                                              {0.60, 0.77, 0.88},
                                              {0.00, 0.62, 0.45},
                                              {0.90, 0.62, 0.00},
                                              {0.80, 0.47, 0.65},
                                              {0.84, 0.37, 0.00},
                                              {0.94, 0.89, 0.26},
                                              {0.55, 0.66, 0.45},
                                              {0.50, 0.54, 0.60},
                                              {0.80, 0.82, 0.85}}};

struct LedgerPanel {
  const LedgerDevice* device = nullptr;
  std::string title;
  std::vector<LedgerLayer> layers;
};

class Drawing {
 public:
  Drawing(Canvas& canvas, const LedgerPanel& panel, const Box& box, std::uint64_t axis_ns)
      : canvas_(canvas),
        panel_(panel),
        points_(panel.device->points),
        box_(box),
        plot_(canvas, {box.left, box.top + kHead, box.width, box.height - kHead}, axis_ns,
              highest_bytes(*panel.device, panel.layers)) {}

  void title() {
    const Font font = {15, true, colours::kInk};
    canvas_.text(canvas_.fit(panel_.title, box_.width, font), box_.left, box_.top + 14, font);
    double at = box_.left;
    double baseline = box_.top + kTitle + 14;
    const auto key = [&](const std::string& words, const Colour& colour, double thickness) {
      const double width = 25 + canvas_.text_width(words, kLegend) + 22;
      if (at > box_.left && at + width > box_.left + box_.width) {
        at = box_.left;
        baseline += kLegendLine;
      }
      canvas_.fill_rectangle(at, baseline - 5 - thickness / 2, 18, thickness, colour);
      canvas_.text(words, at + 25, baseline, kLegend);
      at += width;
    };
    for (const LedgerLayer& layer : panel_.layers) key(layer.words, colour_of(layer), 11);
    key("used, as the driver says", colours::kInk, 3);
  }

  void layers(bool names_times) {
    plot_.axes(names_times);
    if (points_.empty()) return;
    // From the highest to the lowest: each covers the part of the one before that lies below its top.
    for (auto layer = panel_.layers.rbegin(); layer != panel_.layers.rend(); ++layer) {
      canvas_.move_to(x_of(points_.front()), plot_.y(0));
      steps(layer->top);
      canvas_.line_to(x_of(points_.back()), plot_.y(0));
      canvas_.fill(colour_of(*layer));
    }
    canvas_.move_to(x_of(points_.front()), plot_.y(static_cast<double>(points_.front().used_bytes)));
    plot_.steps(points_, [](const LedgerPoint& point) { return point.used_bytes; });
    canvas_.stroke(1.8, colours::kInk);
  }

  void peak() {
    const auto peak = std::max_element(
        points_.begin(), points_.end(),
        [](const LedgerPoint& left, const LedgerPoint& right) { return left.used_bytes < right.used_bytes; });
    if (peak == points_.end()) return;
    plot_.label_point(static_cast<double>(peak->time_ns), static_cast<double>(peak->used_bytes),
                      fmt::format("peak {} at {}", format_bytes(peak->used_bytes), format_duration_ns(peak->time_ns)),
                      colours::kInk);
  }

 private:
  static constexpr double kHead = kTitle + kLegendLine * kLegendLines + kAbove;

  static const Colour& colour_of(const LedgerLayer& layer) { return kColours[static_cast<std::size_t>(layer.colour)]; }
  [[nodiscard]] double x_of(const LedgerPoint& point) const { return plot_.x(static_cast<double>(point.time_ns)); }
  void steps(const std::vector<std::uint64_t>& top) {
    plot_.steps(points_,
                [&](const LedgerPoint& point) { return top[static_cast<std::size_t>(&point - points_.data())]; });
  }

  Canvas& canvas_;
  const LedgerPanel& panel_;
  const std::vector<LedgerPoint>& points_;
  const Box box_;
  ChartPlot plot_;
};

}  // namespace

Result<std::string> draw_ledger(std::span<const Ledger> ledgers, ChartFormat format) {
  std::vector<LedgerPanel> panels;
  std::uint64_t duration_ns = 1;
  for (const Ledger& ledger : ledgers) {
    duration_ns = std::max(duration_ns, ledger.recording.duration_ns);
    for (const LedgerDevice& device : ledger.devices) {
      if (device.points.empty()) continue;
      LedgerPanel& panel = panels.emplace_back();
      panel.device = &device;
      panel.title = printable(device.device);
      if (!device.model.empty()) panel.title += ", " + printable(device.model);
      if (ledgers.size() > 1) panel.title += ", " + recording_title(ledger.recording);
      panel.layers = ledger_layers(device);
      duration_ns = std::max(duration_ns, device.points.back().time_ns);
    }
  }
  ChartPage page;
  page.title = "All memory of the GPU over time";
  page.what = ledgers.empty() ? "nothing recorded" : recordings_words(ledgers.front().recording, ledgers.size());
  page.panels = panels.size();
  page.extra = kTitle + kLegendLine * kLegendLines;
  page.nothing = "No samples of a GPU that this process used.";
  return draw_page(page, format, [&](Canvas& canvas, std::size_t index, const Box& box) {
    Drawing drawing(canvas, panels[index], box, duration_ns);
    drawing.title();
    drawing.layers(index + 1 == panels.size());
    drawing.peak();
  });
}

}  // namespace tidemark
