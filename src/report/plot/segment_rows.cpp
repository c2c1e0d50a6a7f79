#include "report/plot/segment_rows.h"

#include <algorithm>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kSegmentGap = 0.004;          // between segments that share a row
constexpr double kNarrowestBlock = 1 / 800.0;  // narrower blocks are drawn together

std::vector<DrawnBlocks> draw_blocks(const MapSegment& segment, double begin, double widest) {
  std::vector<DrawnBlocks> drawn;
  bool joins = false;  // whether the last one is narrow still
  for (const MapBlock& block : segment.blocks) {
    const double width = static_cast<double>(block.size) / widest;
    const bool narrow = width < kNarrowestBlock;
    if (!narrow || !joins) {
      drawn.push_back({begin, 0, 0, {}, &block});
    }
    DrawnBlocks& last = drawn.back();
    last.width += width;
    ++last.count;
    last.bytes[static_cast<std::size_t>(block.state)] += block.size;
    joins = narrow && last.width < kNarrowestBlock;
    begin += width;
  }
  return drawn;
}

}  // namespace

SegmentRows lay_out_segments(std::span<const MapSegment> map, std::size_t most_rows) {
  std::vector<const MapSegment*> sorted;
  sorted.reserve(map.size());
  for (const MapSegment& segment : map) sorted.push_back(&segment);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const MapSegment* left, const MapSegment* right) { return left->size > right->size; });
  SegmentRows rows;
  double end = 2;  // of the row that is being filled: there is none
  for (const MapSegment* segment : sorted) {
    const auto widest = static_cast<double>(std::max<std::uint64_t>(sorted.front()->size, 1));
    const double width = static_cast<double>(segment->size) / widest;
    if (end + width > 1 + 1e-9) {
      if (rows.rows == most_rows || rows.other_segments != 0) {
        ++rows.other_segments;
        rows.other_bytes += segment->size;
        continue;
      }
      ++rows.rows;
      end = 0;
    }
    rows.segments.push_back({segment, rows.rows - 1, end, draw_blocks(*segment, end, widest)});
    end += width + kSegmentGap;
  }
  return rows;
}

std::vector<std::string> SegmentRows::labels() const {
  std::vector<std::string> labels;
  labels.reserve(rows);
  for (std::size_t index = 0; index < segments.size(); ++index) {
    if (segments[index].row != labels.size()) continue;
    const bool shared = index + 1 < segments.size() && segments[index + 1].row == segments[index].row;
    labels.push_back((shared ? "\xE2\x89\xA4 " : "") + format_bytes(segments[index].segment->size));
  }
  return labels;
}

}  // namespace tidemark
