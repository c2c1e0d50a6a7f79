#include "report/plot/segment_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr double kSegmentGap = 0.004;          // between segments that share a row
constexpr double kGapBetweenAlike = 0.001;     // and look alike
constexpr double kAlike = 1 / 200.0;           // smaller differences of width are ignored
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

bool has_room(double end, double width) {
  return end + width <= 1 + 1e-9;
}

using Run = std::pair<MapBlock::State, std::int64_t>;

// The allocated, pending and free parts of a segment, with resolution kAlike: the end of each run of blocks of one
// state. Parts that are too narrow to be visible belong to the next run.
std::vector<Run> occupancy(const MapSegment& segment, double widest) {
  std::vector<Run> runs;
  double end = 0;
  std::int64_t line = 0;
  for (const MapBlock& block : segment.blocks) {
    end += static_cast<double>(block.size) / widest / kAlike;
    if (std::llround(end) == line) continue;
    line = std::llround(end);
    if (!runs.empty() && runs.back().first == block.state) {
      runs.back().second = line;
    } else {
      runs.emplace_back(block.state, line);
    }
  }
  return runs;
}

// Segments that look alike.
struct Group {
  std::vector<const MapSegment*> segments;
  std::array<std::uint64_t, 3> bytes{};
};

// Largest first. Among equal sizes, the largest group first.
std::vector<Group> group_alike(std::span<const MapSegment> map, double widest) {
  std::map<std::pair<std::uint64_t, std::vector<Run>>, std::size_t> index_of;
  std::vector<Group> groups;
  for (const MapSegment& segment : map) {
    const auto [entry, is_new] = index_of.try_emplace({segment.size, occupancy(segment, widest)}, groups.size());
    if (is_new) groups.emplace_back();
    Group& group = groups[entry->second];
    group.segments.push_back(&segment);
    for (const MapBlock& block : segment.blocks) group.bytes[static_cast<std::size_t>(block.state)] += block.size;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& left, const Group& right) {
    const auto order = [](const Group& group) { return std::pair(group.segments[0]->size, group.segments.size()); };
    return order(left) > order(right);
  });
  return groups;
}

}  // namespace

SegmentRows lay_out_segments(std::span<const MapSegment> map, std::size_t most_rows) {
  std::uint64_t largest = 1;
  for (const MapSegment& segment : map) largest = std::max(largest, segment.size);
  const auto widest = static_cast<double>(largest);
  SegmentRows rows;
  double end = 2;  // of the row that is being filled; initially there is none
  for (const Group& group : group_alike(map, widest)) {
    const std::size_t alike = group.segments.size();
    const std::uint64_t size = group.segments.front()->size;
    const double width = static_cast<double>(size) / widest;
    if (alike > 1 || !has_room(end, width)) {
      if (rows.rows == most_rows || rows.other_segments != 0) {
        rows.other_segments += alike;
        rows.other_bytes += alike * size;
        continue;
      }
      ++rows.rows;
      end = 0;
    }
    for (const MapSegment* segment : group.segments) {
      if (!has_room(end, width)) break;
      rows.segments.push_back({segment, rows.rows - 1, end, draw_blocks(*segment, end, widest), alike, group.bytes});
      end += width + (alike > 1 ? kGapBetweenAlike : kSegmentGap);
    }
    if (alike > 1) end = 2;
  }
  return rows;
}

std::vector<std::string> SegmentRows::labels() const {
  std::vector<std::string> labels;
  labels.reserve(rows);
  for (std::size_t index = 0; index < segments.size(); ++index) {
    if (segments[index].row != labels.size()) continue;
    const bool shared = index + 1 < segments.size() && segments[index + 1].row == segments[index].row;
    const std::string size = format_bytes(segments[index].segment->size);
    const std::uint64_t alike = segments[index].alike;
    labels.push_back(alike > 1 ? fmt::format("{} \xC3\x97 {}", format_count(alike), size)
                     : shared  ? "\xE2\x89\xA4 " + size
                               : size);
  }
  return labels;
}

}  // namespace tidemark
