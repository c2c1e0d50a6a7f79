#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "query/words/stack_text.h"
#include "report/plot/plots.h"
#include "report/plot/segment_rows.h"

namespace tidemark {
namespace {

using State = MapBlock::State;
using Sample = PlotKey::Sample;

constexpr std::size_t kMaxRows = 80;
constexpr double kSegmentRow = 18;
constexpr double kBox = 14;

Role role_of(const DrawnBlocks& drawn) {
  if (!drawn.alone()) return Role::mixed;
  return drawn.first->state == State::allocated      ? Role::allocated
         : drawn.first->state == State::pending_free ? Role::pending_free
                                                     : Role::free;
}

const char* words_of(State state) {
  return state == State::allocated ? "allocated" : state == State::pending_free ? "pending free" : "free";
}

std::string states_text(const std::array<std::uint64_t, 3>& bytes) {
  return fmt::format("allocated {}, pending free {}, free {}", format_bytes(bytes[1]), format_bytes(bytes[2]),
                     format_bytes(bytes[0]));
}

std::vector<std::string> tooltip_of(const SegmentPlotInput& input, const DrawnBlocks& drawn,
                                    const DrawnSegment& segment) {
  std::vector<std::string> lines;
  const std::string size = format_bytes(segment.segment->size);
  if (segment.alike > 1) {
    lines.push_back(fmt::format("{} segments of {} that look alike: {}", format_count(segment.alike), size,
                                states_text(segment.alike_bytes)));
  }
  const std::string where = "in a segment of " + size;
  if (!drawn.alone()) {
    lines.push_back(fmt::format("{} blocks {}: {}", format_count(drawn.count), where, states_text(drawn.bytes)));
    return lines;
  }
  lines.push_back(fmt::format("{}: {} {}", words_of(drawn.first->state), format_bytes(drawn.first->size), where));
  if (input.stacks != nullptr && drawn.first->state != State::free) {
    if (const auto stack = input.stacks->find(drawn.first->stack); stack != input.stacks->end()) {
      lines.push_back(stack_text(stack->second));
    }
  }
  return lines;
}

}  // namespace

Plot segment_plot(const SegmentPlotInput& input) {
  const SegmentRows rows = lay_out_segments(input.segments, kMaxRows);
  Plot plot;
  plot.description = "Segments and the blocks in them, to scale";
  plot.frame_height = static_cast<double>(std::max<std::size_t>(rows.rows, 1)) * kSegmentRow;
  plot.height = plot.frame_height;
  for (const std::string& label : rows.labels()) {
    plot.margin.push_back({static_cast<double>(plot.margin.size()) * kSegmentRow + kBox / 2, label});
  }
  for (const DrawnSegment& segment : rows.segments) {
    for (const DrawnBlocks& drawn : segment.blocks) {
      plot.boxes.push_back({role_of(drawn),
                            drawn.begin,
                            drawn.width,
                            static_cast<double>(segment.row) * kSegmentRow,
                            kBox,
                            tooltip_of(input, drawn, segment),
                            {}});
    }
  }
  const auto add_key = [&](Role role, const char* words) {
    if (plot.has_box(role)) plot.legend.push_back({role, Sample::box, words});
  };
  add_key(Role::allocated, "allocated");
  add_key(Role::pending_free, "pending free: freed, still in use by another stream");
  add_key(Role::mixed, "several blocks, too small to be drawn one by one");
  add_key(Role::free, "free");
  if (const std::uint64_t segments = rows.other_segments + input.other_segments; segments != 0) {
    plot.remark = fmt::format("Not drawn: {} smaller segments, {} in total.", format_count(segments),
                              format_bytes(rows.other_bytes + input.other_bytes));
  }
  return plot;
}

}  // namespace tidemark
