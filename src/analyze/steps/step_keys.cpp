#include "analyze/steps/step_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "analyze/steps/lead_in.h"

namespace tidemark {
namespace {

constexpr std::uint32_t kNoKey = StackId::kNone;
constexpr std::uint64_t kFewest = 4;  // occurrences of a key
constexpr std::uint64_t kFewestBySizes = 10;
constexpr int kTenths = 6;  // of the sequence in which a key occurs
constexpr int kTenthsBySizes = 9;
constexpr double kRegular = 0.7;  // share of periods in which a key must occur equally often
constexpr std::size_t kSizesInARow = 4;
constexpr std::size_t kFewestStacks = 8;

void list_blocks(const Store& store, std::size_t device, KeySequence& sequence) {
  const std::uint64_t begin_ns = lead_in_of(store).end_ns;
  std::uint64_t live = 0;
  for (const LiveChange& live_change : store.live_changes) {
    if (store.blocks.device[live_change.block.value] != device) continue;
    const std::uint64_t size = store.blocks.size[live_change.block.value];
    if (!live_change.birth) {
      live -= size;
      continue;
    }
    if (live_change.time_ns >= begin_ns) {
      sequence.blocks.push_back(live_change.block);
      sequence.live.push_back(live);
    }
    live += size;
  }
}

// Stacks tell steps apart when there are some, and most blocks need not have one: those of autograd's threads have no
// Python stack.
bool use_stacks(const Store& store, const KeySequence& sequence) {
  std::vector<bool> seen(store.definitions.stacks.size());
  std::size_t stacks = 0;
  std::size_t with_stack = 0;
  for (const BlockId block : sequence.blocks) {
    const StackId stack = store.blocks.stack[block.value];
    if (!stack.valid()) continue;
    ++with_stack;
    if (!seen[stack.value]) ++stacks;
    seen[stack.value] = true;
  }
  return stacks >= kFewestStacks || with_stack * 2 >= sequence.blocks.size();
}

// A key for each position, numbered from 0. By stack, key 0 stands for no stack.
std::vector<std::uint32_t> keys_by_stack(const Store& store, const KeySequence& sequence) {
  std::vector<std::uint32_t> keys;
  keys.reserve(sequence.blocks.size());
  for (const BlockId block : sequence.blocks) {
    const StackId stack = store.blocks.stack[block.value];
    keys.push_back(stack.valid() ? stack.value + 1 : 0);
  }
  return keys;
}

std::vector<std::uint32_t> keys_by_sizes(const Store& store, const KeySequence& sequence) {
  std::vector<std::uint32_t> keys(sequence.blocks.size(), kNoKey);
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  known.reserve(sequence.blocks.size());
  // Requested sizes where known: blocks of several sizes may serve the same request.
  const auto& sizes = store.blocks.requested.empty() ? store.blocks.size : store.blocks.requested;
  const auto mixed = [&](std::size_t position) {
    std::uint64_t hash = 0;
    for (std::size_t back = 0; back < kSizesInARow; ++back) {
      hash = (hash ^ sizes[sequence.blocks[position - back].value]) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29U;
    }
    return hash;
  };
  for (std::size_t position = kSizesInARow - 1; position < keys.size(); ++position) {
    keys[position] = known.try_emplace(mixed(position), static_cast<std::uint32_t>(known.size())).first->second;
  }
  return keys;
}

// Sizes in a row may repeat by chance, or with the length of a batch: the requirements are higher.
bool occurs_all_over(const StepKey& key, bool by_stack) {
  const int tenths = std::popcount(key.deciles);
  if (!by_stack) return key.count >= kFewestBySizes && tenths >= kTenthsBySizes;
  return key.count >= kFewest && tenths * 10 >= kTenths * static_cast<int>(std::min<std::uint64_t>(key.count, 10));
}

// For each key and each period, tells `visit(key, count, times)`: in so many successive periods it occurs so often.
template <typename Visit>
void visit_periods(const KeySequence& sequence, const std::vector<std::uint32_t>& boundaries, const Visit& visit) {
  struct Current {
    std::uint32_t next_period = 0;  // the first one not told yet, once `count` is told
    std::uint32_t count = 0;
  };
  std::vector<Current> current(sequence.keys.size());
  const auto periods = static_cast<std::uint32_t>(boundaries.size() - 1);
  const auto tell_until = [&](std::uint32_t key, std::uint32_t period) {
    Current& state = current[key];
    if (state.count != 0) visit(key, state.count, 1U);
    if (period > state.next_period) visit(key, 0U, period - state.next_period);
    state = {period + 1, 0};
  };
  std::uint32_t period = 0;
  for (const Occurrence& occurrence : sequence.occurrences) {
    if (occurrence.position < boundaries.front()) continue;
    while (period < periods && occurrence.position >= boundaries[period + 1]) ++period;
    if (period == periods) break;
    Current& state = current[occurrence.key];
    if (state.count == 0 || state.next_period != period + 1) tell_until(occurrence.key, period);
    ++state.count;
  }
  for (std::uint32_t key = 0; key < sequence.keys.size(); ++key) tell_until(key, periods);
}

// Boyer and Moore's majority vote: the value of more than half of all votes, if there is one.
struct Majority {
  std::uint32_t value = 0;
  std::uint32_t lead = 0;

  void vote(std::uint32_t other, std::uint32_t times) {
    if (other == value) {
      lead += times;
    } else if (times > lead) {
      value = other;
      lead = times - lead;
    } else {
      lead -= times;
    }
  }
};

}  // namespace

KeySequence make_key_sequence(const Store& store, std::size_t device) {
  KeySequence sequence;
  list_blocks(store, device, sequence);
  sequence.by_stack = use_stacks(store, sequence);
  const std::vector<std::uint32_t> key_of =
      sequence.by_stack ? keys_by_stack(store, sequence) : keys_by_sizes(store, sequence);
  std::vector<StepKey> all;
  for (std::size_t position = 0; position < key_of.size(); ++position) {
    const std::uint32_t id = key_of[position];
    if (id == kNoKey) continue;
    if (id >= all.size()) all.resize(id + 1);
    StepKey& key = all[id];
    if (key.count++ == 0) key.first = position;
    key.mean_live += static_cast<double>(sequence.live[position]);
    key.deciles = static_cast<std::uint16_t>(key.deciles | (1U << (position * 10 / key_of.size())));
  }
  std::vector<std::uint32_t> kept(all.size(), kNoKey);
  for (std::size_t id = 0; id < all.size(); ++id) {
    if (!occurs_all_over(all[id], sequence.by_stack)) continue;
    kept[id] = static_cast<std::uint32_t>(sequence.keys.size());
    sequence.keys.push_back(all[id]);
    sequence.keys.back().mean_live /= static_cast<double>(all[id].count);
    sequence.keys.back().anchor = !sequence.by_stack || id != 0;
  }
  for (std::size_t position = 0; position < key_of.size(); ++position) {
    if (key_of[position] == kNoKey || kept[key_of[position]] == kNoKey) continue;
    sequence.occurrences.push_back({static_cast<std::uint32_t>(position), kept[key_of[position]]});
  }
  return sequence;
}

double step_score(const KeySequence& sequence, const std::vector<std::uint32_t>& boundaries) {
  std::vector<Majority> usual(sequence.keys.size());
  visit_periods(sequence, boundaries,
                [&](std::uint32_t key, std::uint32_t count, std::uint32_t times) { usual[key].vote(count, times); });
  std::vector<std::uint32_t> as_usual(sequence.keys.size());
  std::vector<std::uint64_t> inside(sequence.keys.size());
  visit_periods(sequence, boundaries, [&](std::uint32_t key, std::uint32_t count, std::uint32_t times) {
    if (count == usual[key].value) as_usual[key] += times;
    inside[key] += count;
  });
  double keys = 0;
  double occurrences = 0;
  const auto periods = static_cast<double>(boundaries.size() - 1);
  for (std::size_t key = 0; key < sequence.keys.size(); ++key) {
    const double share = as_usual[key] / periods;
    if (usual[key].value == 0 || share < kRegular) continue;
    keys += share;
    occurrences += share * static_cast<double>(inside[key]);
  }
  return std::sqrt(keys / static_cast<double>(sequence.keys.size()) * occurrences /
                   static_cast<double>(sequence.occurrences.size()));
}

}  // namespace tidemark
