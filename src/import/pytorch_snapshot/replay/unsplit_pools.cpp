// Private pools with blocks that are never split: find_unsplit_pools().

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "import/pytorch_snapshot/replay/start.h"

namespace tidemark::pytorch {
namespace {

/// Memory reserved by one entry, for a pool that may be unsplit.
struct ReservedRange {
  std::uint64_t size = 0;
  std::uint64_t rest = 0;  ///< of `size`, after the block at its start, if blocks are split; 0 = none
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
    ranges_.emplace(address, ReservedRange{size, 0, stream, pool});
  }

  void release(std::uint64_t address) {
    const auto range = ranges_.find(address);
    if (range == ranges_.end()) return;
    drop_rest(*range);
    ranges_.erase(range);
  }

  void allocate(std::uint64_t address, std::uint64_t requested) {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return;
    const auto found = std::prev(after);
    auto& [start, range] = *found;
    if (address - start >= range.size) return;
    if (address != start) note(range.pool, Evidence::splits);
    drop_rest(*found);
    if (evidence_[range.pool] == Evidence::splits) {
      ranges_.erase(found);
      return;
    }
    const std::uint64_t rounded = rules_.round_size(requested);
    range.small = get_pool(rounded) == BlockPool::small;
    if (range.fresh && fits_a_rest(range, rounded)) note(range.pool, Evidence::never_splits);
    range.fresh = false;
    if (range.size > rounded && rules_.should_split(range.size, rounded, false)) {
      range.rest = range.size - rounded;
      rests_.insert(rest_of(start, range));
    }
  }

  void free(std::uint64_t address) {
    const auto range = ranges_.find(address);
    if (range != ranges_.end()) drop_rest(*range);
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

  static Rest rest_of(std::uint64_t start, const ReservedRange& range) {
    return {range.pool, range.stream, range.small, range.rest, start};
  }

  void drop_rest(std::pair<const std::uint64_t, ReservedRange>& range) {
    if (range.second.rest != 0) rests_.erase(rest_of(range.first, range.second));
    range.second.rest = 0;
  }

  /// The allocator reserves memory only if no free block of the pool and stream suffices.
  [[nodiscard]] bool fits_a_rest(const ReservedRange& range, std::uint64_t rounded) const {
    const auto best = rests_.lower_bound({range.pool, range.stream, range.small, rounded, 0});
    if (best == rests_.end()) return false;
    const auto& [pool, stream, small, size, start] = *best;
    return pool == range.pool && stream == range.stream && small == range.small && rules_.serves(size, rounded);
  }

  const AllocatorRules& rules_;
  std::vector<Evidence> evidence_;  ///< by pool
  std::map<std::uint64_t, ReservedRange> ranges_;
  std::set<Rest> rests_;  ///< in the order in which the allocator searches free blocks
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
