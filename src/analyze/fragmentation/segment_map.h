// What lies where in the memory that the allocator took from the driver, at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/common/moment.h"
#include "store/store.h"

namespace tidemark {

/// How much of the recording has happened.
struct Cut {
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;   ///< of Store::live_changes
  std::size_t segment_changes = 0;  ///< of Store::segment_changes
};

/// None where nothing was allocated on the device.
[[nodiscard]] std::optional<Cut> cut_at(const Store& store, std::size_t device, const Moment& moment);
/// Right after the segment was reserved that made most reserved bytes. None for sources that do not know segments.
[[nodiscard]] std::optional<Cut> cut_at_peak_reserved(const Store& store, std::size_t device);

struct MapPiece {
  enum class Use : std::uint8_t {
    free,
    used,
    pending,  ///< given back, still in use by another stream
  };
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Use use = Use::free;
  BlockId block;  ///< invalid for free ones
  StackId stack;  ///< of the block
};

/// A segment; of expandable ones, a stretch without a gap.
struct MapSegment {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint16_t stream = 0;  ///< index into Store::streams
  std::uint16_t pool = 0;    ///< index into Store::pools
  StackId stack;             ///< of whoever made the allocator take it; of several pieces, of the first
  bool expandable = false;
  std::vector<MapPiece> pieces;  ///< in order of address, without gaps; free neighbours are one piece

  /// Bytes of the pieces in this use.
  [[nodiscard]] std::uint64_t bytes(MapPiece::Use use) const;
};

/// In order of address. Empty for sources that do not know segments. Blocks that were pending before the trace began
/// show as free.
[[nodiscard]] std::vector<MapSegment> segment_map(const Store& store, std::size_t device, const Cut& cut);

/// What there is to know of sources that do not know segments: runs of pages that blocks of the device used, at any
/// time, with the blocks in them at the cut. In order of address; without stream, pool and stack.
[[nodiscard]] std::vector<MapSegment> used_pages(const Store& store, std::size_t device, const Cut& cut);

}  // namespace tidemark
