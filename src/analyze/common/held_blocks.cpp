#include "analyze/common/held_blocks.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kFewestTimes = 3;

/// The first block of a stack in each step, the second, and so on.
struct Turn {
  std::size_t pairs = 0;            // blocks with one in the step before
  std::vector<std::uint32_t> held;  // those of the latter that were there until they were replaced

  [[nodiscard]] bool usual() const { return held.size() >= kFewestTimes && held.size() * 2 > pairs; }
};

/// What one stack allocated on the device.
struct Place {
  std::size_t step = 0;                 // the training step of `now`
  std::vector<std::uint32_t> previous;  // blocks of the step before; empty when there were none
  std::vector<std::uint32_t> now;
  std::vector<Turn> turns;
};

/// The number of the training step, from 1; 0 before the first.
std::size_t step_of(const TrainingSteps& steps, std::uint64_t event) {
  const auto after = std::upper_bound(
      steps.starts.begin(), steps.starts.end(), event,
      [](std::uint64_t wanted, const TrainingSteps::Start& start) { return wanted < start.event_count; });
  return static_cast<std::size_t>(after - steps.starts.begin());
}

/// Alive when its replacement is allocated, and gone before the next of these is due.
bool is_held(const Blocks& blocks, std::uint32_t old_block, std::uint32_t new_block) {
  const std::uint64_t death = blocks.death_change[old_block];
  const std::uint64_t replaced = blocks.birth_change[new_block];
  return death != Blocks::kAlive && death > replaced && death - replaced < replaced - blocks.birth_change[old_block];
}

std::unordered_map<StackId, Place> find_places(const Store& store, std::size_t device, const TrainingSteps& steps) {
  const Blocks& blocks = store.blocks;
  std::unordered_map<StackId, Place> places;
  for (std::uint32_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device || !blocks.stack[block].valid()) continue;
    Place& place = places[blocks.stack[block]];
    const std::size_t step = step_of(steps, blocks.birth_change[block]);
    if (place.step != step) {
      place.previous = place.step + 1 == step ? std::move(place.now) : std::vector<std::uint32_t>();
      place.now.clear();
      place.step = step;
    }
    if (place.now.size() < place.previous.size()) {
      const std::uint32_t old_block = place.previous[place.now.size()];
      if (place.turns.size() <= place.now.size()) place.turns.resize(place.now.size() + 1);
      Turn& turn = place.turns[place.now.size()];
      ++turn.pairs;
      if (is_held(blocks, old_block, block)) turn.held.push_back(old_block);
    }
    place.now.push_back(block);
  }
  return places;
}

}  // namespace

std::vector<Absence> held_until_replaced(const Store& store, std::size_t device, const TrainingSteps& steps) {
  const Blocks& blocks = store.blocks;
  std::vector<Absence> absences;
  const auto add = [&](std::uint32_t block) {
    const std::size_t next = step_of(steps, blocks.birth_change[block]);
    if (next == steps.starts.size()) return;
    const std::uint64_t from = steps.starts[next].event_count;
    const std::uint64_t death = blocks.death_change[block];
    if (death == Blocks::kAlive) {
      absences.push_back({BlockId{block}, from, Absence::kEnd});
    } else if (death > from) {
      absences.push_back({BlockId{block}, from, death});
    }
  };
  for (const auto& [stack, place] : find_places(store, device, steps)) {
    for (std::size_t index = 0; index < place.turns.size(); ++index) {
      const Turn& turn = place.turns[index];
      if (!turn.usual()) continue;
      std::for_each(turn.held.begin(), turn.held.end(), add);
      if (index < place.now.size()) add(place.now[index]);  // the last, which nothing came to replace
    }
  }
  return absences;
}

std::vector<Absence> freed_after_allocation(const Store& store, std::size_t device) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::vector<Absence> absences;
  std::uint64_t latest_birth = kNone;
  for (std::uint64_t index = 0; index < store.live_changes.size(); ++index) {
    const LiveChange& live_change = store.live_changes[index];
    if (store.blocks.device[live_change.block.value] != device) continue;
    if (live_change.birth) {
      latest_birth = index;
    } else if (latest_birth != kNone && store.blocks.birth_change[live_change.block.value] != latest_birth) {
      absences.push_back({live_change.block, latest_birth, index});
    }
  }
  return absences;
}

}  // namespace tidemark
