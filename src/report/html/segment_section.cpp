#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/units.h"
#include "report/chart/segment_rows.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/html/sections.h"
#include "report/text/parts.h"
#include "report/words/frame_text.h"

namespace tidemark::html {
namespace {

using State = MapBlock::State;

constexpr std::size_t kMostRows = 60;
constexpr double kRow = 18;  // pixels

const char* colour_of(const DrawnPiece& drawn) {
  if (!drawn.alone()) return "mixed";
  return drawn.piece->state == State::allocated      ? "used"
         : drawn.piece->state == State::pending_free ? "pending"
                                                     : "free";
}

std::string title_of(const Report& report, const DrawnPiece& drawn, std::uint64_t segment) {
  const std::string where = fmt::format("in a segment of {}", format_bytes(segment));
  if (!drawn.alone()) {
    return fmt::format("{} pieces {}\nused {}, pending {}, free {}", format_count(drawn.pieces), where,
                       format_bytes(drawn.bytes[1]), format_bytes(drawn.bytes[2]), format_bytes(drawn.bytes[0]));
  }
  std::string title = fmt::format("{}: {} {}", colour_of(drawn), format_bytes(drawn.piece->size), where);
  const auto stack = report.map_stacks.find(drawn.piece->stack);
  if (drawn.piece->state != State::free && stack != report.map_stacks.end()) title += "\n" + stack_text(stack->second);
  return title;
}

void add_picture(std::string& out, const Report& report, const SegmentRows& rows, const Device& device) {
  std::vector<MarginLabel> margin;
  margin.reserve(rows.rows);
  for (const std::string& label : rows.labels()) {
    margin.push_back({static_cast<double>(margin.size()) * kRow + 12, label});
  }
  open_plot(out, "map", fmt::format("Segments of {}", to_string(device)), static_cast<double>(rows.rows) * kRow,
            margin);
  for (const DrawnSegment& segment : rows.segments) {
    for (const DrawnPiece& piece : segment.pieces) {
      fmt::format_to(std::back_inserter(out),
                     "<rect class=\"{}{}\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\"><title>{}</title></rect>\n",
                     piece.width > 0.004 ? "wide " : "", colour_of(piece), percent(piece.begin),
                     static_cast<double>(segment.row) * kRow, percent(piece.width), kRow - 4,
                     escaped(title_of(report, piece, segment.segment->size)));
    }
  }
  out += kPlotEnd;
}

void add_device(std::string& out, const Report& report, std::size_t index) {
  const FragmentationDevice& device = report.fragmentation.devices[index];
  const ReportMap& map = report.maps[index];
  std::string detail;
  if (device.at_moment) {
    detail = fmt::format("{} reserved at {}, of it {} free", bytes_text(device.at_moment->reserved),
                         format_duration_ns(device.at_moment->time_ns), bytes_text(device.at_moment->free));
  }
  add_device_heading(out, device.totals.device, detail);
  add_legend(out, {{"used", "used"},
                   {"pending", "pending: given back, still in use by another stream"},
                   {"mixed", "pieces too small to tell apart"},
                   {"free", "free"}});
  const SegmentRows rows = lay_out_segments(map.segments, kMostRows);
  add_picture(out, report, rows, device.totals.device);
  if (const std::uint64_t segments = rows.other_segments + map.other_segments; segments != 0) {
    add_remark(out, fmt::format("Not drawn: {} smaller segments, {} in all.", format_count(segments),
                                format_bytes(rows.other_bytes + map.other_bytes)));
  }
}

}  // namespace

void add_segment_map(std::string& out, const Report& report, const std::string& id) {
  const auto draws = [](const ReportMap& map) { return !map.segments.empty(); };
  if (std::none_of(report.maps.begin(), report.maps.end(), draws)) return;
  open_section(out, id + "segments", "Where it lay",
               "The segments, each taken from the driver in one piece: largest first, to scale, small ones sharing a "
               "row, at the same peak. A request needs a free piece that is large enough.");
  for (std::size_t index = 0; index < report.maps.size(); ++index) {
    if (draws(report.maps[index])) add_device(out, report, index);
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
