#include "analyze/common/earlier_frees.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "analyze/common/totals.h"

namespace tidemark {
namespace {

constexpr std::size_t kFewestTimes = 3;

/// The n-th block that a stack allocates in each step.
struct BlockSeries {
  std::size_t pairs = 0;            // blocks with a predecessor in the step before
  std::vector<std::uint32_t> held;  // predecessors that were alive until they were replaced

  [[nodiscard]] bool mostly_held() const { return held.size() >= kFewestTimes && held.size() * 2 > pairs; }
};

/// Blocks of one stack on the device.
struct StackBlocks {
  std::size_t step = 0;                 // the training step of `current`
  std::vector<std::uint32_t> previous;  // blocks of the previous step; empty if there were none
  std::vector<std::uint32_t> current;
  std::vector<BlockSeries> series;  // by n
};

/// Alive when its replacement is allocated, and freed before the next replacement is due.
bool is_held(const Blocks& blocks, std::uint32_t old_block, std::uint32_t new_block) {
  const std::uint64_t death = blocks.death_change[old_block];
  const std::uint64_t replaced = blocks.birth_change[new_block];
  return death != Blocks::kAlive && death > replaced && death - replaced < replaced - blocks.birth_change[old_block];
}

std::unordered_map<StackId, StackBlocks> blocks_by_stack(const Store& store, std::size_t device,
                                                         const TrainingSteps& steps) {
  const Blocks& blocks = store.blocks;
  std::unordered_map<StackId, StackBlocks> by_stack;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device || !blocks.stack[block].valid()) continue;
    StackBlocks& stack = by_stack[blocks.stack[block]];
    const std::size_t step = steps.begun_by(blocks.birth_change[block]);
    if (stack.step != step) {
      stack.previous = stack.step + 1 == step ? std::move(stack.current) : std::vector<std::uint32_t>();
      stack.current.clear();
      stack.step = step;
    }
    if (stack.current.size() < stack.previous.size()) {
      const std::uint32_t old_block = stack.previous[stack.current.size()];
      if (stack.series.size() <= stack.current.size()) stack.series.resize(stack.current.size() + 1);
      BlockSeries& series = stack.series[stack.current.size()];
      ++series.pairs;
      if (is_held(blocks, old_block, block)) series.held.push_back(old_block);
    }
    stack.current.push_back(block);
  }
  return by_stack;
}

struct Change {
  std::uint64_t change_count = 0;
  std::int64_t bytes = 0;
};

/// Absent bytes, going forward in time; negative if bytes are added.
class FreedEarlier {
 public:
  FreedEarlier(const Store& store, const std::vector<EarlierFree>& earlier_frees) {
    begins_.reserve(earlier_frees.size());
    ends_.reserve(earlier_frees.size());
    for (const EarlierFree& earlier_free : earlier_frees) {
      const auto bytes = static_cast<std::int64_t>(earlier_free.size(store));
      const std::int64_t size = earlier_free.added ? -bytes : bytes;
      begins_.push_back({earlier_free.from, size});
      ends_.push_back({earlier_free.to, size});
    }
    const auto earlier = [](const Change& left, const Change& right) { return left.change_count < right.change_count; };
    std::sort(begins_.begin(), begins_.end(), earlier);
    std::sort(ends_.begin(), ends_.end(), earlier);
  }

  std::int64_t at(std::uint64_t change_count) {
    for (; begin_ < begins_.size() && begins_[begin_].change_count < change_count; ++begin_)
      bytes_ += begins_[begin_].bytes;
    for (; end_ < ends_.size() && ends_[end_].change_count < change_count; ++end_) bytes_ -= ends_[end_].bytes;
    return bytes_;
  }

 private:
  std::vector<Change> begins_;
  std::vector<Change> ends_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::vector<EarlierFree> kept_into_next_step(const Store& store, std::size_t device, const TrainingSteps& steps) {
  const Blocks& blocks = store.blocks;
  std::vector<EarlierFree> earlier_frees;
  const auto add = [&](std::uint32_t block) {
    const std::size_t next = steps.begun_by(blocks.birth_change[block]);
    if (next == steps.starts.size()) return;
    const std::uint64_t from = steps.starts[next].event_count;
    const std::uint64_t death = blocks.death_change[block];
    if (death == Blocks::kAlive) {
      earlier_frees.push_back({BlockId{block}, from, EarlierFree::kEnd});
    } else if (death > from) {
      earlier_frees.push_back({BlockId{block}, from, death});
    }
  };
  for (const auto& [id, stack] : blocks_by_stack(store, device, steps)) {
    for (std::size_t index = 0; index < stack.series.size(); ++index) {
      const BlockSeries& series = stack.series[index];
      if (!series.mostly_held()) continue;
      std::for_each(series.held.begin(), series.held.end(), add);
      if (index < stack.current.size()) add(stack.current[index]);  // the last block, which has no replacement
    }
  }
  return earlier_frees;
}

std::vector<EarlierFree> freed_after_allocation(const Store& store, std::size_t device) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::vector<EarlierFree> earlier_frees;
  std::uint64_t latest_birth = kNone;
  for (std::uint64_t index = 0; index < store.live_changes.size(); ++index) {
    const LiveChange& live_change = store.live_changes[index];
    if (store.blocks.device[live_change.block.value] != device) continue;
    if (live_change.birth) {
      latest_birth = index;
    } else if (latest_birth != kNone && store.blocks.birth_change[live_change.block.value] != latest_birth) {
      earlier_frees.push_back({live_change.block, latest_birth, index});
    }
  }
  return earlier_frees;
}

EarlierFree never_there(const Store& store, BlockId block) {
  const std::uint32_t death = store.blocks.death_change[block.value];
  return {block, store.blocks.birth_change[block.value], death == Blocks::kAlive ? EarlierFree::kEnd : death};
}

ReducedPeak reduced_peak(const Store& store, std::size_t device, const std::vector<EarlierFree>& earlier_frees) {
  ReducedPeak peak;
  FreedEarlier freed_earlier(store, earlier_frees);
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (totals.device != device) return;
    const std::int64_t left = static_cast<std::int64_t>(totals.allocated_bytes) - freed_earlier.at(totals.change_count);
    const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(left, 0));
    if (bytes <= peak.bytes) return;
    peak.bytes = bytes;
    peak.at_ns = totals.time_ns;
  });
  return peak;
}

}  // namespace tidemark
