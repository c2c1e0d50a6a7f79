// The segments that the allocator reserved from the driver, and the blocks in them, at one time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/common/moment.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// A position in the recording, as numbers of changes up to it.
struct TracePosition {
  std::uint64_t time_ns = 0;
  std::uint64_t change_count = 0;   ///< of Store::live_changes
  std::size_t segment_changes = 0;  ///< of Store::segment_changes
};

/// nullopt if nothing was allocated on the device.
[[nodiscard]] std::optional<TracePosition> position_at(const Store& store, std::size_t device, const Moment& moment);
/// Right after the segment was reserved that raised reserved bytes to their maximum. nullopt for sources without
/// segments.
[[nodiscard]] std::optional<TracePosition> position_at_peak_reserved(const Store& store, std::size_t device);

struct MapBlock {
  enum class State : std::uint8_t {
    free,
    allocated,
    pending_free,  ///< freed by the program, still in use by another stream
  };
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  State state = State::free;
  BlockId block;  ///< invalid for free ones
  StackId stack;  ///< of the block
};

inline constexpr EnumName<MapBlock::State> kBlockStateNames[] = {{MapBlock::State::free, "free"},
                                                                 {MapBlock::State::allocated, "allocated"},
                                                                 {MapBlock::State::pending_free, "pending_free"}};
[[nodiscard]] constexpr std::string_view name_of(MapBlock::State state) {
  return name_in(kBlockStateNames, state);
}

/// A segment; of expandable ones, a stretch without a gap.
struct MapSegment {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint16_t stream = 0;  ///< index into Store::streams
  std::uint16_t pool = 0;    ///< index into Store::pools
  StackId stack;             ///< stack of the request for which the allocator reserved it; of several blocks, the first
                             ///< one's
  bool expandable = false;
  std::vector<MapBlock> blocks;  ///< in order of address, without gaps; free neighbours are one block

  /// Bytes of the blocks in this state.
  [[nodiscard]] std::uint64_t bytes(MapBlock::State state) const;
};

/// In order of address. Empty for sources without segments. Blocks that were pending before the trace began show as
/// free.
[[nodiscard]] std::vector<MapSegment> segment_map(const Store& store, std::size_t device,
                                                  const TracePosition& position);

/// For sources without segments: runs of pages that blocks of the device used at any time, with the blocks alive at the
/// position. In order of address; without stream, pool and stack.
[[nodiscard]] std::vector<MapSegment> used_pages(const Store& store, std::size_t device, const TracePosition& position);

}  // namespace tidemark
