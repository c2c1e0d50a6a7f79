#include "analyze/forecast/growth_detector.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/forecast/sample_growth.h"
#include "analyze/forecast/usage_history.h"
#include "analyze/leaks/growth.h"
#include "analyze/leaks/leaks.h"

namespace tidemark {
namespace {

constexpr std::size_t kValuesPerSource = 128;
constexpr double kSecondsPerMinute = 60;
constexpr std::uint64_t kStepsToDecide = kMinAnalyzedSteps + 4;  // including their warm-up

Slope times(const Slope& slope, double factor) {
  return {slope.value * factor, slope.low * factor, slope.high * factor};
}

// Sources of one leak grow together: so do the errors.
Slope plus(const Slope& left, const Slope& right) {
  return {left.value + right.value, left.low + right.low, left.high + right.high};
}

}  // namespace

// Memory at the ends of steps. For joined steps the minimum: memory freed in between counts for none of them.
struct HeldAtSteps {
  std::vector<double> values;
  std::uint64_t first_step = 0;
  std::uint64_t latest_step = 0;
  double latest = 0;

  void add(std::uint64_t step, std::uint64_t stride, double bytes) {
    if (values.empty()) first_step = step / stride * stride;
    const auto place = static_cast<std::size_t>((step - first_step) / stride);
    if (place < values.size()) {
      values[place] = std::min(values[place], bytes);
    } else {
      values.push_back(bytes);
    }
    latest_step = step;
    latest = bytes;
  }
  void join() {
    for (std::size_t index = 0; 2 * index < values.size(); ++index) {
      values[index] = std::min(values[2 * index], values[std::min(2 * index + 1, values.size() - 1)]);
    }
    values.resize((values.size() + 1) / 2);
  }
};

bool LiveGrowths::steps_decide() const {
  return steps >= kStepsToDecide;
}

std::optional<LiveGrowth> LiveGrowths::whole() const {
  if (!steps_decide()) return memory;
  std::optional<LiveGrowth> sum;
  for (const LiveGrowth& source : sources) {
    if (source.classification != GrowthClass::leak) break;  // leaks come first
    if (!sum) {
      sum = source;
      sum->source.reset();
      continue;
    }
    sum->bytes_per_minute = plus(sum->bytes_per_minute, source.bytes_per_minute);
    if (sum->bytes_per_step && source.bytes_per_step) {
      sum->bytes_per_step = plus(*sum->bytes_per_step, *source.bytes_per_step);
    }
    sum->held_bytes += source.held_bytes;
    sum->grown_bytes += source.grown_bytes;
    sum->seconds = std::max(sum->seconds, source.seconds);
    sum->steps = std::max(sum->steps, source.steps);
    sum->grown_steps = std::max(sum->grown_steps, source.grown_steps);
    sum->analyzed_steps = std::max(sum->analyzed_steps, source.analyzed_steps);
  }
  return sum;
}

bool LiveGrowths::leaks() const {
  const auto growth = whole();
  return growth && growth->classification == GrowthClass::leak;
}

struct GrowthDetector::State {
  GrowthOptions options;
  UsageHistory history;
  std::unordered_map<std::uint64_t, HeldAtSteps> sources;
  std::uint64_t steps = 0;
  std::uint64_t stride = 1;             // steps of a value of HeldAtSteps
  std::vector<std::uint64_t> times_ns;  // of the first step of each value
  std::uint64_t latest_ns = 0;

  [[nodiscard]] double seconds_per_step() const;
  void drop_smallest();
  [[nodiscard]] std::optional<LiveGrowth> growth_of(const HeldAtSteps& held) const;
};

// Without the warm-up: between its steps the program may be loading.
double GrowthDetector::State::seconds_per_step() const {
  const std::size_t from = std::min<std::size_t>(default_warmup(times_ns.size()), times_ns.size() - 1);
  const std::uint64_t passed = steps - 1 - std::min(steps - 1, from * stride);
  const auto since = static_cast<double>(latest_ns - std::min(latest_ns, times_ns[from]));
  return since / kNanosecondsPerSecond / static_cast<double>(std::max<std::uint64_t>(1, passed));
}

// Keeps half of the maximum, so that it does not run for each new source.
void GrowthDetector::State::drop_smallest() {
  std::vector<std::pair<double, std::uint64_t>> by_size;
  for (const auto& [source, held] : sources) by_size.emplace_back(held.latest, source);
  const auto keep = by_size.begin() + static_cast<std::ptrdiff_t>(options.most_sources / 2);
  std::nth_element(by_size.begin(), keep, by_size.end(), std::greater<>());
  for (auto gone = keep; gone != by_size.end(); ++gone) sources.erase(gone->second);
}

std::optional<LiveGrowth> GrowthDetector::State::growth_of(const HeldAtSteps& held) const {
  // An incomplete value may still decrease.
  std::vector<double> values = held.values;
  if (stride > 1 && (held.latest_step + 1) % stride != 0 && !values.empty()) values.pop_back();
  if (values.empty()) return std::nullopt;
  // Sources that appear late have no warm-up.
  const auto all = static_cast<std::uint64_t>(steps / stride);
  const std::uint32_t warmup = default_warmup(all);
  const auto late = held.first_step / stride;
  const auto own = static_cast<std::uint32_t>(late >= warmup ? 0 : warmup - late);
  const auto growth = find_series_growth(values, own, static_cast<double>(kLeakFloorPerStep) / 2);
  if (!growth) return std::nullopt;
  LiveGrowth found;
  found.classification = growth->classification;
  const double seconds_per_step = this->seconds_per_step();
  found.bytes_per_step = times(growth->bytes_per_step, 1 / static_cast<double>(stride));
  if (seconds_per_step > 0) found.bytes_per_minute = times(*found.bytes_per_step, kSecondsPerMinute / seconds_per_step);
  found.held_bytes = static_cast<std::uint64_t>(held.latest);
  found.grown_bytes = growth->bytes_per_step.value * growth->analyzed_steps;
  found.steps = growth->analyzed_steps * stride;
  found.seconds = static_cast<double>(*found.steps) * seconds_per_step;
  found.grown_steps = growth->grown_steps;
  found.analyzed_steps = growth->analyzed_steps;
  return found;
}

GrowthDetector::GrowthDetector(const GrowthOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
GrowthDetector::~GrowthDetector() = default;
GrowthDetector::GrowthDetector(GrowthDetector&&) noexcept = default;
GrowthDetector& GrowthDetector::operator=(GrowthDetector&&) noexcept = default;

void GrowthDetector::add(const UsageSample& sample) {
  state_->history.add(sample);
}

void GrowthDetector::end_step(std::uint64_t time_ns, std::span<const SourceBytes> sources) {
  State& state = *state_;
  state.latest_ns = std::max(state.latest_ns, time_ns);
  const std::uint64_t step = state.steps++;
  if (step / state.stride >= kValuesPerSource) {
    for (auto& [source, held] : state.sources) {
      if (held.first_step / state.stride % 2 == 1) held.values.insert(held.values.begin(), 0);
      held.first_step = held.first_step / (2 * state.stride) * (2 * state.stride);
      held.join();
    }
    state.stride *= 2;
    for (std::size_t index = 0; 2 * index < state.times_ns.size(); ++index) {
      state.times_ns[index] = state.times_ns[2 * index];
    }
    state.times_ns.resize((state.times_ns.size() + 1) / 2);
  }
  if (step % state.stride == 0) state.times_ns.push_back(time_ns);
  for (const SourceBytes& source : sources) {
    state.sources[source.source].add(step, state.stride, static_cast<double>(source.bytes));
  }
  for (auto entry = state.sources.begin(); entry != state.sources.end();) {
    HeldAtSteps& held = entry->second;
    if (held.latest_step != step) held.add(step, state.stride, 0);
    const bool never_held = *std::max_element(held.values.begin(), held.values.end()) == 0;
    entry = never_held ? state.sources.erase(entry) : std::next(entry);
  }
  if (state.sources.size() > state.options.most_sources) state.drop_smallest();
}

void GrowthDetector::forget_steps() {
  state_->sources.clear();
  state_->steps = 0;
  state_->stride = 1;
  state_->times_ns.clear();
  state_->latest_ns = 0;
}

LiveGrowths GrowthDetector::assess() const {
  const State& state = *state_;
  LiveGrowths all;
  all.steps = state.steps;
  if (const auto growth = find_sample_growth(state.history.spans())) {
    LiveGrowth& memory = all.memory.emplace();
    memory.classification = growth->cells.classification;
    memory.bytes_per_minute = times(growth->cells.bytes_per_step, kSecondsPerMinute / growth->cell_seconds);
    memory.seconds = growth->seconds;
    memory.steps = growth->steps;
    if (growth->steps && *growth->steps > 0) {
      memory.bytes_per_step = times(growth->cells.bytes_per_step,
                                    growth->seconds / growth->cell_seconds / static_cast<double>(*growth->steps));
    }
    memory.held_bytes = state.history.latest().last_bytes;
    memory.grown_bytes = growth->cells.bytes_per_step.value * growth->cells.analyzed_steps;
    memory.grown_steps = growth->cells.grown_steps;
    memory.analyzed_steps = growth->cells.analyzed_steps;
    if (memory.bytes_per_minute.value < state.options.least_bytes_per_minute) all.memory.reset();
  }
  for (const auto& [source, held] : state.sources) {
    auto growth = state.growth_of(held);
    if (!growth || growth->bytes_per_minute.value < state.options.least_bytes_per_minute) continue;
    growth->source = source;
    all.sources.push_back(*growth);
  }
  std::sort(all.sources.begin(), all.sources.end(), [](const LiveGrowth& left, const LiveGrowth& right) {
    const bool left_leaks = left.classification == GrowthClass::leak;
    const bool right_leaks = right.classification == GrowthClass::leak;
    if (left_leaks != right_leaks) return left_leaks;
    if (left.bytes_per_minute.value != right.bytes_per_minute.value)
      return left.bytes_per_minute.value > right.bytes_per_minute.value;
    return left.source < right.source;
  });
  return all;
}

}  // namespace tidemark
