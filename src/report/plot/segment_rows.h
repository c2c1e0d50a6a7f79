// The place of each segment and each of its blocks in a picture of the segment map, in units of the picture's width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyze/fragmentation/segment_map.h"

namespace tidemark {

/// A block, or neighbouring ones that are too narrow to be seen one by one.
struct DrawnBlocks {
  double begin = 0;
  double width = 0;
  std::uint64_t count = 0;
  std::array<std::uint64_t, 3> bytes{};  ///< by MapBlock::State
  const MapBlock* first = nullptr;       ///< of them

  [[nodiscard]] bool alone() const { return count == 1; }
};

struct DrawnSegment {
  const MapSegment* segment = nullptr;
  std::size_t row = 0;
  double begin = 0;
  std::vector<DrawnBlocks> blocks;  ///< from the left to the right
  /// Number of segments of this size with the same allocated, pending and free parts, at the resolution of a picture.
  std::uint64_t alike = 1;
  std::array<std::uint64_t, 3> alike_bytes{};  ///< of all of these, by MapBlock::State
};

/// Largest segments first, to scale: the largest fills a row, small ones share rows. Segments that look alike share one
/// row, with as many of them as fit.
struct SegmentRows {
  std::vector<DrawnSegment> segments;
  std::size_t rows = 0;
  std::uint64_t other_segments = 0;  ///< segments without a row
  std::uint64_t other_bytes = 0;

  /// "1.8 GiB" for each row: the size of its first segment, "≤ 20.0 MiB" if several share the row, "12 × 20.0 MiB" for
  /// segments that look alike.
  [[nodiscard]] std::vector<std::string> labels() const;
};

/// At most `most_rows` rows. The map must outlive the result.
[[nodiscard]] SegmentRows lay_out_segments(std::span<const MapSegment> map, std::size_t most_rows);

}  // namespace tidemark
