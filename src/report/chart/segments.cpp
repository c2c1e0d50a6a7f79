#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "report/chart/chart.h"
#include "report/chart/segment_rows.h"
#include "report/chart/surface.h"
#include "report/text/parts.h"
#include "report/text/text.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

using State = MapBlock::State;

constexpr double kWidth = 1200;
constexpr double kHeader = 84;
constexpr double kFooter = 28;
constexpr double kLeft = 110;
constexpr double kRight = 36;
constexpr double kTitle = 34;  // of a device
constexpr double kBelow = 34;  // its rows: what was left out, and room
constexpr double kRow = 17;
constexpr std::size_t kMostRows = 80;  // of a device
constexpr Font kSmall = {12, false, colours::kQuiet};

struct Panel {
  std::string title;
  std::string nothing;  // said in place of a map
  SegmentRows rows;

  [[nodiscard]] double height() const {
    return kTitle + static_cast<double>(std::max<std::size_t>(rows.rows, 1)) * kRow + kBelow;
  }
};

Panel panel_of(const FragmentationDevice& device, const std::string& recording) {
  Panel panel;
  panel.title = to_string(device.totals.device);
  if (!recording.empty()) panel.title += ", " + recording;
  if (device.at_moment) {
    panel.title += fmt::format(", at {}: {} reserved, {} allocated, {} free",
                               format_duration_ns(device.at_moment->time_ns), bytes_text(device.at_moment->reserved),
                               format_bytes(device.at_moment->allocated), bytes_text(device.at_moment->free));
  }
  panel.rows = lay_out_segments(device.map, kMostRows);
  if (panel.rows.rows == 0) {
    panel.nothing = device.knows_segments ? "No segment was reserved then."
                                          : "Where free memory lies is known from PyTorch snapshots only.";
  }
  return panel;
}

const Colour& colour_of(const DrawnPiece& piece) {
  if (!piece.alone()) return colours::kMixed;
  return piece.piece->state == State::allocated      ? colours::kAllocated
         : piece.piece->state == State::pending_free ? colours::kActive
                                                     : colours::kFree;
}

void draw_panel(Canvas& canvas, const Panel& panel, double top) {
  constexpr double kPlot = kWidth - kLeft - kRight;
  const Font heading = {15, true, colours::kInk};
  canvas.text(canvas.fit(panel.title, kPlot, heading), kLeft, top + 18, heading);
  const double first = top + kTitle;
  if (!panel.nothing.empty()) canvas.text(panel.nothing, kLeft, first + 12, kSmall);
  double label_top = first;
  for (const std::string& label : panel.rows.labels()) {
    canvas.text(label, kLeft - 10, label_top + 12, kSmall, Canvas::Align::right);
    label_top += kRow;
  }
  for (const DrawnSegment& segment : panel.rows.segments) {
    const double y = first + static_cast<double>(segment.row) * kRow;
    for (const DrawnPiece& piece : segment.pieces) {
      // A hair of paper between neighbours, where there is room for it.
      const double width = piece.width * kPlot;
      const double gap = width > 3 ? 0.7 : 0;
      canvas.fill_rectangle(kLeft + piece.begin * kPlot, y, width - gap, kRow - 4, colour_of(piece));
    }
  }
  if (panel.rows.other_segments != 0) {
    canvas.text(fmt::format("not drawn: {} smaller segments, {} in all", format_count(panel.rows.other_segments),
                            format_bytes(panel.rows.other_bytes)),
                kLeft, label_top + 14, kSmall);
  }
}

void draw_header(Canvas& canvas, std::span<const Fragmentation> results) {
  canvas.text("Segments of the allocator", kLeft, 36, {22, true, colours::kInk});
  double at = kLeft;
  const Font font = {13, false, colours::kInk};
  const std::pair<const char*, Colour> keys[] = {
      {"used", colours::kAllocated},
      {"pending: given back, still in use by another stream", colours::kActive},
      {"pieces too small to tell apart", colours::kMixed},
      {"free", colours::kFree}};
  for (const auto& [words, colour] : keys) {
    canvas.fill_rectangle(at, 49, 18, 11, colour);
    canvas.text(words, at + 25, 59, font);
    at += 25 + canvas.text_width(words, font) + 24;
  }
  if (results.size() == 1) {
    const std::string name = canvas.fit(recording_title(results.front().recording), 420, font);
    canvas.text(name, kWidth - kRight, 36, {13, false, colours::kQuiet}, Canvas::Align::right);
  }
}

}  // namespace

Result<std::string> draw_segment_map(std::span<const Fragmentation> results, ChartFormat format) {
  std::vector<Panel> panels;
  double height = kHeader + kFooter;
  for (const Fragmentation& result : results) {
    const std::string recording = results.size() == 1 ? "" : recording_title(result.recording);
    for (const FragmentationDevice& device : result.devices) {
      panels.push_back(panel_of(device, recording));
      height += panels.back().height();
    }
  }
  if (panels.size() > kMaxPanels) {
    return Error{fmt::format("a picture of {} devices would be unreadable; draw at most {} at a time (--device)",
                             panels.size(), kMaxPanels)};
  }
  if (panels.empty()) height += 40;
  return draw_picture(kWidth, height, format, [&](Canvas& canvas) {
    draw_header(canvas, results);
    double top = kHeader;
    for (const Panel& panel : panels) {
      draw_panel(canvas, panel, top);
      top += panel.height();
    }
    if (panels.empty()) canvas.text("No events.", kLeft, kHeader + 30, {15, false, colours::kInk});
  });
}

}  // namespace tidemark
