#include "import/pytorch_snapshot/replay/unsplit_pools.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace tidemark::pytorch {
namespace {

/// What was reserved in one go, for a pool that may be one of those sought.
struct Piece {
  std::uint64_t size = 0;
  std::uint64_t rest = 0;  ///< of `size`, behind the block at its start, if blocks are split; 0 = none
  std::uint16_t stream = 0;
  std::uint16_t pool = 0;
  bool small = false;  ///< the block at its start; small and large requests never share memory
  bool fresh = true;   ///< no block lay in it yet
};

/// In order of strength: a pool that has split one block splits them all.
enum class Evidence : std::uint8_t { none, never_splits, splits };

class Search {
 public:
  Search(const AllocatorRules& rules, std::size_t pools) : rules_(rules), evidence_(pools) {}

  void reserve(std::uint64_t address, std::uint64_t size, std::uint16_t stream, std::uint16_t pool) {
    if (pool == 0 || pool >= evidence_.size() || evidence_[pool] == Evidence::splits) return;
    release(address);
    pieces_.emplace(address, Piece{size, 0, stream, pool});
  }

  void release(std::uint64_t address) {
    const auto piece = pieces_.find(address);
    if (piece == pieces_.end()) return;
    drop_rest(*piece);
    pieces_.erase(piece);
  }

  void allocate(std::uint64_t address, std::uint64_t requested) {
    const auto after = pieces_.upper_bound(address);
    if (after == pieces_.begin()) return;
    const auto found = std::prev(after);
    auto& [start, piece] = *found;
    if (address - start >= piece.size) return;
    if (address != start) note(piece.pool, Evidence::splits);
    drop_rest(*found);
    if (evidence_[piece.pool] == Evidence::splits) {
      pieces_.erase(found);
      return;
    }
    const std::uint64_t rounded = rules_.round_size(requested);
    piece.small = get_pool(rounded) == BlockPool::small;
    if (piece.fresh && fits_a_rest(piece, rounded)) note(piece.pool, Evidence::never_splits);
    piece.fresh = false;
    if (piece.size > rounded && rules_.should_split(piece.size, rounded, false)) {
      piece.rest = piece.size - rounded;
      rests_.insert(rest_of(start, piece));
    }
  }

  void free(std::uint64_t address) {
    const auto piece = pieces_.find(address);
    if (piece != pieces_.end()) drop_rest(*piece);
  }

  void note(std::uint16_t pool, Evidence evidence) {
    if (pool < evidence_.size()) evidence_[pool] = std::max(evidence_[pool], evidence);
  }

  [[nodiscard]] std::vector<bool> found() const {
    std::vector<bool> pools;
    pools.reserve(evidence_.size());
    for (const Evidence evidence : evidence_) pools.push_back(evidence == Evidence::never_splits);
    return pools;
  }

 private:
  using Rest = std::tuple<std::uint16_t, std::uint16_t, bool, std::uint64_t, std::uint64_t>;

  static Rest rest_of(std::uint64_t start, const Piece& piece) {
    return {piece.pool, piece.stream, piece.small, piece.rest, start};
  }

  void drop_rest(std::pair<const std::uint64_t, Piece>& piece) {
    if (piece.second.rest != 0) rests_.erase(rest_of(piece.first, piece.second));
    piece.second.rest = 0;
  }

  /// The allocator reserves only where no free block of the pool and stream will do.
  [[nodiscard]] bool fits_a_rest(const Piece& piece, std::uint64_t rounded) const {
    const auto best = rests_.lower_bound({piece.pool, piece.stream, piece.small, rounded, 0});
    if (best == rests_.end()) return false;
    const auto& [pool, stream, small, size, start] = *best;
    return pool == piece.pool && stream == piece.stream && small == piece.small && rules_.serves(size, rounded);
  }

  const AllocatorRules& rules_;
  std::vector<Evidence> evidence_;  ///< by pool
  std::map<std::uint64_t, Piece> pieces_;
  std::set<Rest> rests_;  ///< in the order in which the allocator looks for free blocks
};

void look_at_final(const Snapshot& snapshot, std::int32_t device, const AllocatorRules& rules, Search& search) {
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device || segment.pool == 0) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (!segment.expandable && block.address != segment.address) search.note(segment.pool, Evidence::splits);
      if (block.state != BlockState::active_allocated && block.state != BlockState::active_pending_free) continue;
      const std::uint64_t rounded = rules.round_size(block.requested_size);
      if (block.size > rounded && rules.should_split(block.size, rounded, segment.expandable)) {
        search.note(segment.pool, Evidence::never_splits);
      }
    }
  }
}

}  // namespace

std::vector<bool> find_unsplit_pools(const Snapshot& snapshot, const DeviceTrace& trace, const AllocatorRules& rules,
                                     const std::vector<StartSegment>& initial,
                                     const std::vector<ReservedPool>& reserved) {
  Search search(rules, snapshot.pools.size());
  look_at_final(snapshot, trace.device, rules, search);
  for (const StartSegment& segment : initial) {
    search.reserve(segment.range.address, segment.range.size, segment.stream, segment.pool);
  }
  auto known = reserved.begin();
  for (std::uint32_t i = 0; i < trace.entries.size(); ++i) {
    const TraceEntry& entry = trace.entries[i];
    switch (entry.action) {
      case Action::segment_alloc:
      case Action::segment_map: {
        const bool said = known != reserved.end() && known->entry == i;
        search.reserve(entry.address, entry.size, entry.stream, said ? known++->pool : entry.pool);
        break;
      }
      case Action::segment_free:
      case Action::segment_unmap:
        search.release(entry.address);
        break;
      case Action::allocate:
        search.allocate(entry.address, entry.size);
        break;
      case Action::free_completed:
        search.free(entry.address);
        break;
      default:
        break;
    }
  }
  return search.found();
}

}  // namespace tidemark::pytorch
