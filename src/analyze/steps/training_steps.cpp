#include "analyze/steps/training_steps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyze/common/annotations.h"
#include "analyze/common/stack_matching.h"
#include "base/step_names.h"

namespace tidemark {

namespace {

constexpr std::size_t kMaxClocks = 16;
// Minimum score of a clock; measured: 0.65 and more for real training, including varying lengths.
constexpr double kLowestScore = 0.35;
constexpr double kAsEven = 0.98;  // evenness within 2% is the same
constexpr double kNearlyAsEven = 0.8;
constexpr std::size_t kMuchFaster = 3;
// A shorter period is used if its score is near the best score (for a loop that evaluates every tenth step, the period
// of ten steps is the most regular) and memory returns to the same level at its end, which it does not between the
// layers of a forward pass. Measured: between layers the score is at most 0.65 of the best one.
constexpr double kShorterScore = 0.7;
constexpr double kBack = 0.15;
constexpr double kOptimizerScore = 0.4;  // of the best one, for the optimizer to be the clock

using Boundaries = std::vector<std::uint32_t>;  // positions in a KeySequence

struct Clock {
  std::size_t key = 0;
  std::uint64_t keys_alike = 0;  // how many keys occur as often
  Boundaries boundaries;
  double score = 0;
};

bool is_optimizer_file(std::string_view file) {
  return file.find("torch/optim/") != std::string_view::npos && file.find("lr_scheduler") == std::string_view::npos;
}

// Functions that build a model, move it to a device or load its parameters.
bool is_building_function(std::string_view name) {
  constexpr std::array<std::string_view, 5> kFunctions = {"__init__", "_apply", "load_state_dict",
                                                          "_load_from_state_dict", "from_pretrained"};
  return std::ranges::find(kFunctions, plain_name(name)) != kFunctions.end();
}

// For each stack, whether `matches` is true of the location of one of its frames.
template <typename Matches>
std::vector<bool> stacks_with(const Definitions& definitions, const Matches& matches) {
  std::vector<bool> locations;
  for (const Location& location : definitions.locations) locations.push_back(matches(location));
  std::vector<bool> stacks;
  for (const StackNode& node : definitions.stacks) {
    const bool own = node.location.valid() && node.location.value < locations.size() && locations[node.location.value];
    stacks.push_back(own || (node.parent.valid() && node.parent.value < stacks.size() && stacks[node.parent.value]));
  }
  return stacks;
}

// For each stack, whether one of its frames is of an optimizer of PyTorch.
std::vector<bool> optimizer_stacks(const Definitions& definitions) {
  return stacks_with(definitions,
                     [&](const Location& location) { return is_optimizer_file(definitions.text(location.file)); });
}

// The first position of each run of allocations by the optimizer.
Boundaries optimizer_runs(const Store& store, const KeySequence& sequence) {
  const std::vector<bool> is_optimizer = optimizer_stacks(store.definitions);
  Boundaries runs;
  bool inside = false;
  for (std::size_t position = 0; position < sequence.blocks.size(); ++position) {
    const StackId stack = store.blocks.stack[sequence.blocks[position].value];
    const bool optimizer = stack.valid() && stack.value < is_optimizer.size() && is_optimizer[stack.value];
    if (optimizer && !inside) runs.push_back(static_cast<std::uint32_t>(position));
    inside = optimizer;
  }
  return runs;
}

// Whether a clock ticks within training steps, such as once in each layer: the optimizer has run a few times, and fewer
// ticks follow its last run than precede each run on average. An optimizer that allocates only in the first step, for
// its state, is followed by all other ticks.
bool ticks_within_steps(const Clock& clock, const Boundaries& runs) {
  if (runs.empty() || runs.size() >= kFewestSteps) return false;
  const auto before = std::count_if(clock.boundaries.begin(), clock.boundaries.end(),
                                    [&runs](std::uint32_t position) { return position < runs.back(); });
  const auto after = static_cast<std::ptrdiff_t>(clock.boundaries.size()) - before;
  return after * static_cast<std::ptrdiff_t>(runs.size()) < before;
}

// Whether a clock ticks once for each layer of a model that is built, moved to a device or loaded: its stack is below a
// function that does this, and less than one block of the device in a period is freed.
bool builds_a_model(const Store& store, const KeySequence& sequence, const Clock& clock) {
  if (!sequence.by_stack) return false;
  const std::vector<bool> builds = stacks_with(store.definitions, [&](const Location& location) {
    return is_building_function(store.definitions.text(location.function));
  });
  const StackId anchor = store.blocks.stack[sequence.blocks[clock.boundaries.front()].value];
  if (!anchor.valid() || anchor.value >= builds.size() || !builds[anchor.value]) return false;
  const std::uint8_t device = store.blocks.device[sequence.blocks.front().value];
  const auto change_at = [&](std::uint32_t position) {
    return static_cast<std::ptrdiff_t>(store.blocks.birth_change[sequence.blocks[position].value]);
  };
  const auto freed = std::count_if(
      store.live_changes.begin() + change_at(clock.boundaries.front()),
      store.live_changes.begin() + change_at(clock.boundaries.back()),
      [&](const LiveChange& change) { return !change.birth && store.blocks.device[change.block.value] == device; });
  return freed < static_cast<std::ptrdiff_t>(clock.boundaries.size());
}

// The first position after each of these times.
Boundaries positions_of(const Store& store, const KeySequence& sequence, std::span<const std::uint64_t> times_ns) {
  Boundaries positions;
  std::uint32_t position = 0;
  for (const std::uint64_t time_ns : times_ns) {
    const auto born_by_then = [&](BlockId block) {
      return store.live_changes[store.blocks.birth_change[block.value]].time_ns <= time_ns;
    };
    while (position < sequence.blocks.size() && born_by_then(sequence.blocks[position])) ++position;
    if (position == sequence.blocks.size()) break;
    if (positions.empty() || positions.back() != position) positions.push_back(position);
  }
  return positions;
}

// One clock for each number of occurrences that keys have: the key with least memory alive, as steps begin at low
// water.
std::vector<Clock> candidate_clocks(const KeySequence& sequence) {
  std::vector<std::size_t> anchors;
  for (std::size_t key = 0; key < sequence.keys.size(); ++key) {
    if (sequence.keys[key].anchor) anchors.push_back(key);
  }
  std::sort(anchors.begin(), anchors.end(), [&](std::size_t left, std::size_t right) {
    const StepKey& one = sequence.keys[left];
    const StepKey& other = sequence.keys[right];
    if (one.count != other.count) return one.count > other.count;
    return one.mean_live != other.mean_live ? one.mean_live < other.mean_live : one.first < other.first;
  });
  std::vector<Clock> clocks;
  for (const std::size_t key : anchors) {
    if (clocks.empty() || sequence.keys[clocks.back().key].count != sequence.keys[key].count) {
      clocks.emplace_back().key = key;
    }
    ++clocks.back().keys_alike;
  }
  std::stable_sort(clocks.begin(), clocks.end(),
                   [](const Clock& left, const Clock& right) { return left.keys_alike > right.keys_alike; });
  if (clocks.size() > kMaxClocks) clocks.resize(kMaxClocks);
  return clocks;
}

// How alike the distances between boundaries are: 1 / (1 + the square of their coefficient of variation).
double evenness(const Boundaries& boundaries) {
  const auto count = static_cast<double>(boundaries.size() - 1);
  const double mean = (boundaries.back() - boundaries.front()) / count;
  double squares = 0;
  for (std::size_t index = 1; index < boundaries.size(); ++index) {
    const double off = boundaries[index] - boundaries[index - 1] - mean;
    squares += off * off;
  }
  return 1 / (1 + squares / count / (mean * mean));
}

// Distance of memory at the end of a period from its level at the beginning: the median, as a share of the period's
// range.
double usual_drift(const KeySequence& sequence, const Boundaries& boundaries) {
  std::vector<double> drifts;
  for (std::size_t index = 0; index + 1 < boundaries.size(); ++index) {
    const auto begin = sequence.live.begin() + boundaries[index];
    const auto end = sequence.live.begin() + boundaries[index + 1];
    const auto [low, high] = std::minmax_element(begin, end + 1);
    const auto change = static_cast<double>(std::max(*begin, *end) - std::min(*begin, *end));
    drifts.push_back(*high == *low ? 0 : change / static_cast<double>(*high - *low));
  }
  const auto middle = drifts.begin() + static_cast<std::ptrdiff_t>(drifts.size() / 2);
  std::nth_element(drifts.begin(), middle, drifts.end());
  return *middle;
}

// Selects among clocks by sizes, sorted by agreement of keys: one as even as the best. A much faster and nearly as even
// clock is preferred if memory returns to the same level at its end, because the best may be an epoch; a clock only
// twice as fast is not, because a key may occur twice in a step.
const Clock& most_even(const KeySequence& sequence, const std::vector<Clock>& clocks, const Clock& best) {
  const Clock* fastest = &best;
  for (const Clock& clock : clocks) {
    const bool much_faster = clock.boundaries.size() >= kMuchFaster * best.boundaries.size();
    if (!much_faster || clock.score < kNearlyAsEven * best.score) continue;
    if (usual_drift(sequence, clock.boundaries) > kBack) continue;
    if (fastest == &best || clock.score * kAsEven > fastest->score) fastest = &clock;
  }
  if (fastest != &best) return *fastest;
  return *std::find_if(clocks.begin(), clocks.end(),
                       [&](const Clock& clock) { return clock.score >= kAsEven * best.score; });
}

// The best of the clocks, or a faster one that is nearly as regular.
std::optional<Clock> choose(const KeySequence& sequence, const std::vector<Clock>& clocks) {
  if (clocks.empty()) return std::nullopt;
  const auto better = [](const Clock& left, const Clock& right) { return left.score < right.score; };
  const Clock& best = *std::max_element(clocks.begin(), clocks.end(), better);
  if (!sequence.by_stack) return most_even(sequence, clocks, best);
  const double enough = best.score * kShorterScore;
  const Clock* fastest = &best;
  for (const Clock& clock : clocks) {
    const std::size_t count = clock.boundaries.size();
    if (clock.score < enough || count * 2 < best.boundaries.size() * 3) continue;
    const bool faster = count * 10 > fastest->boundaries.size() * 11;
    const bool alike = count * 11 >= fastest->boundaries.size() * 10 && clock.score > fastest->score;
    if (!faster && !alike) continue;
    if (usual_drift(sequence, clock.boundaries) <= kBack) fastest = &clock;
  }
  return *fastest;
}

TrainingSteps steps_at(const Store& store, const KeySequence& sequence, TrainingSteps::Source source,
                       const Clock& clock) {
  TrainingSteps steps;
  steps.source = source;
  steps.regularity = clock.score;
  for (const std::uint32_t position : clock.boundaries) {
    const std::uint32_t event = store.blocks.birth_change[sequence.blocks[position].value];
    steps.starts.push_back({store.live_changes[event].time_ns, event});
  }
  if (source == TrainingSteps::Source::stack) {
    steps.anchor = store.blocks.stack[sequence.blocks[clock.boundaries.front()].value];
  }
  return steps;
}

constexpr std::uint32_t kNoKey = StackId::kNone;
constexpr std::uint64_t kFewest = 4;  // occurrences of a key
constexpr std::uint64_t kFewestBySizes = 10;
constexpr int kTenths = 6;  // minimum number of tenths of the sequence that contain the key
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

// Stacks are used if there are some, even if most blocks have none: blocks of autograd's threads have no Python stack.
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
  // Requested sizes if known: blocks of several sizes may serve the same request.
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

// Calls `visit(key, count, times)` for runs of `times` successive periods in which a key occurs `count` times.
template <typename Visit>
void visit_periods(const KeySequence& sequence, const std::vector<std::uint32_t>& boundaries, const Visit& visit) {
  struct Current {
    std::uint32_t next_period = 0;  // the first period not visited yet, once `count` was visited
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

TrainingSteps find_training_steps(const Store& store) {
  const AnnotatedSteps annotated = annotated_steps(store.definitions);
  const auto steps_as_annotated = [&] {
    TrainingSteps steps = given_training_steps(store, annotated.starts_ns);
    steps.source = TrainingSteps::Source::annotation;
    steps.mark = annotated.name;
    const std::vector<std::uint32_t>& births = store.blocks.birth_change;
    steps.last_is_empty = steps.starts.size() > 1 && !births.empty() && births.back() < steps.starts.back().event_count;
    return steps;
  };
  // Only the first step was seen to begin: no optimizer has run, or the program ended in that step.
  const bool only_begun = annotated.starts_ns.size() == 1;
  if (!annotated.starts_ns.empty() && !annotated.of_optimizer && !only_begun) return steps_as_annotated();
  const auto blocks = [](const DeviceSummary& summary) {
    return is_driver_memory(summary.device) ? 0 : summary.allocation_count;
  };
  const auto busiest =
      std::max_element(store.devices.begin(), store.devices.end(),
                       [&](const auto& left, const auto& right) { return blocks(left) < blocks(right); });
  if (busiest == store.devices.end()) return only_begun ? steps_as_annotated() : TrainingSteps{};
  const KeySequence sequence = make_key_sequence(store, static_cast<std::size_t>(busiest - store.devices.begin()));
  if (sequence.keys.empty()) return annotated.starts_ns.empty() ? TrainingSteps{} : steps_as_annotated();

  std::vector<Clock> clocks = candidate_clocks(sequence);
  std::vector<std::size_t> clock_of(sequence.keys.size(), clocks.size());
  for (std::size_t index = 0; index < clocks.size(); ++index) clock_of[clocks[index].key] = index;
  for (const Occurrence& occurrence : sequence.occurrences) {
    const std::size_t clock = clock_of[occurrence.key];
    if (clock != clocks.size()) clocks[clock].boundaries.push_back(occurrence.position);
  }
  for (Clock& clock : clocks) {
    clock.score = sequence.by_stack ? step_score(sequence, clock.boundaries) : evenness(clock.boundaries);
  }
  const std::optional<Clock> repeating = choose(sequence, clocks);

  const auto tells_steps = [&](Clock& clock) {
    if (clock.boundaries.size() < kFewestSteps) return false;
    clock.score = step_score(sequence, clock.boundaries);
    return clock.score >= std::max(kLowestScore, repeating ? kOptimizerScore * repeating->score : 0);
  };
  Clock optimizer;
  optimizer.boundaries = positions_of(store, sequence, annotated.starts_ns);
  if (tells_steps(optimizer)) {
    TrainingSteps steps = steps_as_annotated();
    steps.regularity = optimizer.score;
    return steps;
  }
  optimizer.boundaries = optimizer_runs(store, sequence);
  if (tells_steps(optimizer)) return steps_at(store, sequence, TrainingSteps::Source::optimizer, optimizer);
  if (only_begun && !optimizer.boundaries.empty()) return steps_as_annotated();
  if (!repeating || repeating->score < kLowestScore) return only_begun ? steps_as_annotated() : TrainingSteps{};
  if (ticks_within_steps(*repeating, optimizer.boundaries) || builds_a_model(store, sequence, *repeating)) return {};
  const auto source = sequence.by_stack ? TrainingSteps::Source::stack : TrainingSteps::Source::sizes;
  return steps_at(store, sequence, source, *repeating);
}

TrainingSteps given_training_steps(const Store& store, std::span<const std::uint64_t> times_ns) {
  TrainingSteps steps;
  steps.source = TrainingSteps::Source::given;
  for (const std::uint64_t time_ns : times_ns) steps.starts.push_back({time_ns, store.changes_until(time_ns)});
  return steps;
}

AnnotatedSteps annotated_steps(const Definitions& definitions) {
  std::unordered_map<StringId, StepName> known;
  std::array<AnnotatedSteps, kStepNames> found;
  for (const AnnotatedRange& range : annotated_ranges(definitions)) {
    const auto [entry, is_new] = known.try_emplace(range.name, StepName::other);
    if (is_new && range.name.valid() && range.name.value < definitions.strings.size()) {
      entry->second = step_name_of(definitions.strings[range.name.value]);
    }
    if (entry->second == StepName::other) continue;
    AnnotatedSteps& steps = found[static_cast<std::size_t>(entry->second)];
    if (!steps.name.valid()) steps.name = range.name;
    const bool later = steps.starts_ns.empty() || range.begin_ns > steps.starts_ns.back();
    if (later) steps.starts_ns.push_back(range.begin_ns);
  }
  found[static_cast<std::size_t>(StepName::optimizer)].of_optimizer = true;
  AnnotatedSteps& planned = found[static_cast<std::size_t>(StepName::planned)];
  if (!planned.starts_ns.empty()) return std::move(planned);
  for (AnnotatedSteps& steps : found) {
    if (steps.starts_ns.size() >= kFewestSteps) return std::move(steps);
  }
  return {};
}

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
  std::vector<Majority> usual_rise(sequence.keys.size());  // for keys that occur more often in each period than before
  std::vector<std::uint32_t> before(sequence.keys.size());
  visit_periods(sequence, boundaries, [&](std::uint32_t key, std::uint32_t count, std::uint32_t times) {
    usual[key].vote(count, times);
    usual_rise[key].vote(count - std::min(count, before[key]), 1);
    before[key] = count;
  });
  std::vector<std::uint32_t> as_usual(sequence.keys.size());
  std::vector<std::uint32_t> rises(sequence.keys.size());
  std::vector<std::uint64_t> inside(sequence.keys.size());
  std::ranges::fill(before, 0);
  visit_periods(sequence, boundaries, [&](std::uint32_t key, std::uint32_t count, std::uint32_t times) {
    if (count == usual[key].value) as_usual[key] += times;
    if (count > before[key] && count - before[key] == usual_rise[key].value) ++rises[key];
    before[key] = count;
    inside[key] += count;
  });
  double keys = 0;
  double occurrences = 0;
  const auto periods = static_cast<double>(boundaries.size() - 1);
  for (std::size_t key = 0; key < sequence.keys.size(); ++key) {
    const double share = std::max(usual[key].value == 0 ? 0 : as_usual[key], rises[key]) / periods;
    if (share < kRegular) continue;
    keys += share;
    occurrences += share * static_cast<double>(inside[key]);
  }
  return std::sqrt(keys / static_cast<double>(sequence.keys.size()) * occurrences /
                   static_cast<double>(sequence.occurrences.size()));
}

}  // namespace tidemark
