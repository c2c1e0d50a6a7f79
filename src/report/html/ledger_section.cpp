#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/units.h"
#include "report/chart/ledger_layers.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/html/time_plot.h"
#include "report/words/ledger.h"
#include "report/words/ledger_rows.h"
#include "report/words/recording.h"

namespace tidemark::html {
namespace {

// By LayerColour; the style sheet has the colours.
constexpr std::array kStyles = {"layer layer0", "layer layer1", "layer layer2", "layer layer3", "layer layer4",
                                "layer layer5", "layer layer6", "layer layer7", "layer layer8", "layer layer9"};

const char* style_of(LayerColour colour) {
  return kStyles[static_cast<std::size_t>(colour)];
}

LayerColour colour_of(const LedgerLine& line, const LedgerDevice& device) {
  switch (line.part) {
    case LedgerPart::pytorch:
      return LayerColour::allocated;
    case LedgerPart::library:
      return library_colour(device, line.name);
    case LedgerPart::context:
      return LayerColour::context;
    case LedgerPart::process:
      break;
  }
  return LayerColour::processes;
}

// The sum as one bar, as wide as what is used or what is known, whichever is more.
class Bar {
 public:
  Bar(std::string& out, const LedgerDevice& device) : out_(out), device_(device), whole_(*device.breakdown.used_bytes) {
    const std::int64_t rest = device.breakdown.unexplained_bytes.value_or(0);
    if (rest < 0) whole_ += 0 - static_cast<std::uint64_t>(rest);
  }

  void add() {
    const LedgerBreakdown& ledger = device_.breakdown;
    fmt::format_to(std::back_inserter(out_),
                   "<svg class=\"sum\" role=\"img\" aria-label=\"What is used of {}, by owner\" width=\"100%\" "
                   "height=\"28\">",
                   escaped(device_.device));
    for (const LedgerLine& line : ledger.lines) {
      if (line.part == LedgerPart::pytorch) {
        piece(style_of(LayerColour::allocated), ledger.allocated_bytes.value_or(0), "allocated by PyTorch");
        piece(style_of(LayerColour::cached), ledger.cached_bytes.value_or(0), "cached by PyTorch");
      } else {
        piece(style_of(colour_of(line, device_)), line.bytes.value_or(0), line_words(line, ledger));
      }
    }
    if (ledger.unexplained_bytes.value_or(0) > 0) {
      piece("rest", static_cast<std::uint64_t>(*ledger.unexplained_bytes), "unexplained");
    }
    out_ += "</svg>\n";
  }

 private:
  void piece(const char* style, std::uint64_t bytes, const std::string& words) {
    if (bytes == 0) return;
    fmt::format_to(std::back_inserter(out_),
                   "<rect class=\"{}\" x=\"{}\" width=\"{}\" y=\"1\" height=\"26\"><title>{}: {}</title></rect>", style,
                   percent(ratio(at_, whole_)), percent(ratio(bytes, whole_)), escaped(words), format_bytes(bytes));
    at_ += bytes;
  }

  std::string& out_;
  const LedgerDevice& device_;
  std::uint64_t whole_;
  std::uint64_t at_ = 0;
};

void add_lines(std::string& out, const LedgerBreakdown& ledger) {
  open_table(out, {"bytes", "of used", "owner"});
  for (const LedgerRow& row : ledger_rows(ledger)) {
    const std::string words = escaped(row.words);
    add_row(out, {row.bytes, row.share, row.part ? "<span class=\"part\">" + words + "</span>" : words});
  }
  out += kTableEnd;
  for (const std::string& remark : ledger_remarks(ledger)) add_remark(out, escaped(remark));
  for (const LedgerCaveat caveat : ledger.caveats)
    add_remark(out, "Note: " + escaped(caveat_words(caveat, ledger)) + ".");
}

void add_hints(TimePlot& plot, const LedgerDevice& device, const std::vector<LedgerLayer>& layers) {
  std::vector<std::uint64_t> times;
  times.reserve(device.points.size());
  for (const LedgerPoint& point : device.points) times.push_back(point.time_ns);
  plot.hints(times, [&](std::size_t index) {
    std::string words = "\nused " + format_bytes(device.points[index].used_bytes);
    std::uint64_t below = 0;
    for (const LedgerLayer& layer : layers) {
      words += fmt::format("\n{} {}", escaped(layer.words), format_bytes(layer.top[index] - below));
      below = layer.top[index];
    }
    return words;
  });
}

void add_over_time(std::string& out, const LedgerDevice& device, std::uint64_t duration_ns) {
  if (device.points.empty()) return;
  const std::vector<LedgerLayer> layers = ledger_layers(device);
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const LedgerLayer& layer : layers) names.push_back(escaped(layer.words));
  std::vector<Key> keys;
  keys.reserve(layers.size() + 1);
  for (std::size_t index = 0; index < layers.size(); ++index) {
    keys.push_back({style_of(layers[index].colour), names[index].c_str()});
  }
  keys.push_back({"total line", "used, by the driver\xE2\x80\x99s word; what it is above the rest is unexplained"});
  add_legend(out, keys);
  TimePlot plot(out, std::max(duration_ns, device.points.back().time_ns), highest_bytes(device, layers));
  plot.open(fmt::format("All memory of {} over time, by owner", escaped(device.device)));
  plot.open_curves();
  const LedgerPoint* const first = device.points.data();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const std::string curve = plot.steps(
        device.points, [&](const LedgerPoint& point) { return layer->top[static_cast<std::size_t>(&point - first)]; });
    plot.area(style_of(layer->colour), curve, first->time_ns);
  }
  plot.line("total", plot.steps(device.points, [](const LedgerPoint& point) { return point.used_bytes; }));
  plot.close_curves();
  add_hints(plot, device, layers);
  const auto peak = std::max_element(
      device.points.begin(), device.points.end(),
      [](const LedgerPoint& left, const LedgerPoint& right) { return left.used_bytes < right.used_bytes; });
  plot.label_point(peak->time_ns, peak->used_bytes,
                   fmt::format("peak {} at {}", format_bytes(peak->used_bytes), format_duration_ns(peak->time_ns)));
  plot.close();
}

}  // namespace

void add_ledger(std::string& out, const Report& report, const std::string& id) {
  const auto sampled = [](const LedgerDevice& device) { return device.breakdown.used_bytes.has_value(); };
  if (std::none_of(report.ledger.devices.begin(), report.ledger.devices.end(), sampled)) return;
  open_section(
      out, id + "ledger", "All memory of the GPU",
      "The memory that the driver reports as used, by owner: at the sample with the most used bytes, and over time.");
  for (const LedgerDevice& device : report.ledger.devices) {
    if (!sampled(device)) continue;
    fmt::format_to(std::back_inserter(out), "<h4>{}</h4>\n",
                   escaped(ledger_title(device.device, device.model, device.total_bytes, device.breakdown)));
    Bar(out, device).add();
    add_lines(out, device.breakdown);
    add_over_time(out, device, report.recording.duration_ns);
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
