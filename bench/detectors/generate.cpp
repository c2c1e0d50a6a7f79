#include "generate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "random.h"
#include "simulated_training.h"

namespace tidemark::detectors {
namespace {

using Make = void (*)(Training& training, Random& random);

// Properties that any run may have.
Training any_training(Random& random) {
  constexpr double kGiB = 1 << 30;
  Training t;
  t.limit_bytes =
      static_cast<std::uint64_t>(random.one_of({8.0, 11.0, 16.0, 24.0, 40.0, 48.0, 80.0, 141.0, 192.0}) * kGiB);
  t.samples_per_second = random.one_of({1.0, 2.0, 5.0, 10.0});
  t.duration = random.log_uniform(300, 2400);
  t.view = random.one_of({View::allocated, View::allocated, View::reserved, View::device});
  t.steps_known = random.chance(0.5);
  t.peaks_known = random.chance(0.5);
  t.seconds_per_step = random.log_uniform(0.08, 4);
  t.step_jitter = random.uniform(0, 0.25);
  t.loading = random.log_uniform(3, 40);
  if (random.chance(0.3)) t.attached_after = random.uniform(t.loading, t.loading + 0.2 * t.duration);
  t.base = random.uniform(0.08, 0.4);
  t.activations = random.uniform(0.05, 0.35);
  if (t.view == View::device && random.chance(0.5)) t.noise = random.log_uniform(1e-4, 5e-3);
  return t;
}

// Disturbances that may accompany anything else, but do not hide it: they do not bring memory near the limit.
void disturb(Training& t, Random& random) {
  if (random.chance(0.35)) t.length_spread = random.uniform(0.05, 0.6);
  if (random.chance(0.25)) t.micro_batches = random.integer(2, 8);
  if (random.chance(0.3)) {
    t.evaluate_every = random.integer(30, 300);
    t.evaluation_steps = random.integer(3, 20);
    t.evaluation = random.uniform(0.3, 1.3);
    t.empties_cache = random.chance(0.3);
  }
  if (random.chance(0.3)) {
    t.warm_up = random.uniform(0.01, 0.1);
    t.warm_up_time = random.log_uniform(3, 40);
  }
  if (random.chance(0.25)) {
    t.collect_every = std::max(3, static_cast<int>(random.log_uniform(2, 60) / t.seconds_per_step));
    t.garbage = random.uniform(0.01, 0.08) / t.collect_every;
  }
  if (random.chance(0.1)) t.gap_at = random.uniform(0.3, 0.9) * t.duration;
  if (t.length_spread > 0 && random.chance(0.4)) t.fragmentation = random.uniform(0, 0.2);
}

double free_share(const Training& t) {
  const double context = t.view == View::device ? 0.06 : 0;
  return 1 - t.base - t.warm_up - 1.15 * t.activations * std::max(1.0, t.evaluation) * (1 + t.fragmentation) -
         1.2 * t.garbage * t.collect_every - context;
}

double begin_of(Training& t, Random& random) {
  t.grows_from = std::max(t.loading, t.attached_after) + random.uniform(0, 0.3) * t.duration;
  return t.grows_from;
}

// Growth per second of a leak: fast and medium ones reach the limit, slow ones do not within an hour after the end.
enum class Slope : std::uint8_t { fast, medium, slow };
double speed_of(Slope slope, Training& t, Random& random) {
  const double from = begin_of(t, random);
  const double room = std::max(0.1, free_share(t));
  if (slope == Slope::slow) {
    const double grown = std::min(room * 0.25, random.log_uniform(0.03, 0.25));
    return grown / (t.duration - from);
  }
  const double seconds = slope == Slope::fast ? random.log_uniform(100, 400) : random.log_uniform(400, 1500);
  t.duration = from + seconds * 1.2;
  return room / seconds;
}

// Bytes left by each step, of variable size.
std::function<double(int, double)> losses_from(double from, double per_step, double varies, Random& random) {
  return [=, &random](int, double now) { return now < from ? 0 : per_step * (1 + varies * random.normal()); };
}

// The bytes added since the previous time; `held` gives the bytes held at a time.
template <typename Held>
auto additions_to(Held held) {
  return [held, before = 0.0](double now) mutable {
    const double after = held(now);
    return std::max(0.0, after - std::exchange(before, after));
  };
}

// The five mistakes leave memory at different times and in different amounts; `speed` is the amount per second.
enum class Mistake : std::uint8_t { losses, containers, hooks, caches, metrics };
void leak(Training& t, Random& random, Mistake mistake, Slope slope) {
  if (t.duration < 600) t.duration += 600;
  const double speed = speed_of(slope, t, random);
  const double per_step = speed * t.seconds_per_step;
  const double from = t.grows_from;
  const double varies = random.uniform(0, 0.4);
  switch (mistake) {
    case Mistake::losses:
      t.grows = losses_from(from, per_step, varies, random);
      break;
    case Mistake::containers: {
      const int every = random.integer(1, 8);
      t.grows = [=](int step, double now) { return now < from || step % every != 0 ? 0 : per_step * every; };
      break;
    }
    case Mistake::hooks:
      t.grows = [=](int, double now) { return now < from ? 0 : per_step; };
      break;
    case Mistake::caches: {
      const double misses = random.uniform(0.05, 0.6);
      t.grows = [=, &random](int, double now) {
        if (now < from || !random.chance(misses)) return 0.0;
        return per_step / misses * random.uniform(0.3, 1.7);
      };
      break;
    }
    case Mistake::metrics: {
      const int every = std::max(2, static_cast<int>(random.log_uniform(5, 30) / std::max(1.0, t.seconds_per_step)));
      t.grows = [=](int step, double now) { return now < from || step % every != 0 ? 0 : per_step * every; };
      break;
    }
  }
}

template <Mistake mistake, Slope slope>
void leaks(Training& t, Random& random) {
  disturb(t, random);
  leak(t, random, mistake, slope);
}

// At a constant rate from the first step on, until the memory is full within one and a half minutes.
void leaks_rapidly(Training& t, Random& random) {
  t.attached_after = 0;
  t.seconds_per_step = random.log_uniform(0.05, 1);
  t.grows_from = t.loading;
  const double seconds = random.log_uniform(20, 90);
  t.duration = t.grows_from + seconds * 1.2;
  const double per_step = std::max(0.1, free_share(t)) / seconds * t.seconds_per_step;
  const double varies = random.uniform(0, 0.4);
  t.grows = losses_from(t.grows_from, per_step, varies, random);
}

// Each stage of a curriculum has larger batches, until one is too large.
void batch_stairs(Training& t, Random& random) {
  t.length_spread = random.chance(0.4) ? random.uniform(0, 0.2) : 0;
  const double from = begin_of(t, random);
  const double seconds = random.log_uniform(150, 1200);
  const int stairs = random.integer(6, 30);
  t.duration = from + seconds * 1.2;
  const double rise = (free_share(t) / t.activations) / stairs;
  const double stage = seconds / stairs;
  t.batch_size = [=](int, double now) { return now < from ? 1 : 1 + rise * std::floor((now - from) / stage); };
}

void batch_slope(Training& t, Random& random) {
  const double from = begin_of(t, random);
  const double seconds = random.log_uniform(150, 1200);
  t.duration = from + seconds * 1.2;
  const double rise = free_share(t) / t.activations / seconds;
  t.batch_size = [=](int, double now) { return now < from ? 1 : 1 + rise * (now - from); };
}

void steady(Training& t, Random& random) {
  t.base = random.uniform(0.08, 0.6);
  t.activations = random.uniform(0.05, 0.95 - t.base - 0.06);
}
void sawtooth(Training& t, Random& random) {
  disturb(t, random);
  const double seconds = random.log_uniform(2, 60);
  t.collect_every = std::max(3, static_cast<int>(seconds / t.seconds_per_step));
  t.garbage = random.uniform(0.1, 0.6) * std::max(0.1, free_share(t)) / t.collect_every;
}
void warms_up(Training& t, Random& random) {
  disturb(t, random);
  t.warm_up = 0;
  t.warm_up = random.uniform(0.2, 0.8) * std::max(0.1, free_share(t));
  t.warm_up_time = random.log_uniform(5, 60);
}
void variable_length(Training& t, Random& random) {
  t.length_spread = random.uniform(0.3, 0.9);
  t.base = random.uniform(0.05, 0.3);
  t.activations = random.uniform(0.2, 0.9 - t.base) * 0.55;
}
void evaluations(Training& t, Random& random) {
  disturb(t, random);
  t.evaluate_every = std::max(10, static_cast<int>(random.log_uniform(20, 300) / t.seconds_per_step));
  t.evaluation_steps = std::max(2, static_cast<int>(t.evaluate_every * random.uniform(0.05, 0.4)));
  t.evaluation = random.uniform(0.2, 0.9) * (1 - t.base - t.warm_up - 0.15) / t.activations;
}
void accumulation(Training& t, Random& random) {
  t.seconds_per_step = random.log_uniform(0.5, 20);
  disturb(t, random);
  t.micro_batches = random.integer(2, 32);
}
// A cache with an increasing hit rate.
void cache_fills(Training& t, Random& random) {
  disturb(t, random);
  const double from = begin_of(t, random);
  const double size = random.uniform(0.1, 0.85) * std::max(0.1, free_share(t));
  const double time = random.log_uniform(10, 0.15 * t.duration);
  const double misses = random.chance(0.5) ? 1 : random.uniform(0.1, 0.6);
  auto additions = additions_to([=](double now) { return size * (1 - std::exp(-(now - from) / time)); });
  t.grows = [=, &random](int, double now) mutable {
    return now < from || !random.chance(misses) ? 0.0 : additions(now);
  };
}
// At a constant rate until it is full, which is below the limit.
void fill(Training& t, double size, double time) {
  const double from = t.grows_from;
  auto additions = additions_to([=](double now) { return size * std::clamp((now - from) / time, 0.0, 1.0); });
  t.grows = [=](int, double now) mutable { return additions(now); };
}
// A data set that is loaded gradually, or a replay buffer.
void fills_slowly(Training& t, Random& random) {
  disturb(t, random);
  begin_of(t, random);
  const double size = random.uniform(0.1, 0.6) * std::max(0.1, free_share(t));
  fill(t, size, random.uniform(0.2, 0.6) * t.duration);
}
// The first pass over a small data set, which stays on the GPU.
void fills_rapidly(Training& t, Random& random) {
  disturb(t, random);
  t.grows_from = t.loading;
  const double size = random.uniform(0.1, 0.6) * std::max(0.1, free_share(t));
  fill(t, size, random.log_uniform(10, 60));
}
void allocator_cache(Training& t, Random& random) {
  t.view = random.one_of({View::reserved, View::device});
  t.length_spread = random.uniform(0.2, 0.8);
  t.fragmentation = random.uniform(0.1, 1.5);
  t.base = random.uniform(0.05, 0.4);
  t.activations = random.uniform(0.2, 0.9 - t.base) * 0.55;
}
void large_model(Training& t, Random& random) {
  t.attached_after = 0;
  t.base = random.uniform(0.5, 0.85);
  t.activations = random.uniform(0.2, 0.9) * (0.92 - t.base);
  t.loading = random.log_uniform(15, 90);
}
void jump(Training& t, Random& random) {
  disturb(t, random);
  const double from = begin_of(t, random);
  const double size = random.uniform(0.5, 0.9) * std::max(0.05, free_share(t));
  auto done = std::make_shared<bool>(false);
  t.grows = [=](int, double now) {
    if (now < from || *done) return 0.0;
    *done = true;
    return size;
  };
}
void restarts(Training& t, Random& random) {
  t.restarts_after = std::max(20, static_cast<int>(random.uniform(0.15, 0.5) * t.duration / t.seconds_per_step));
  t.warm_up = random.uniform(0, 0.2);
}

struct Kind {
  std::string_view name;
  Make make;
  Leaks leaks;
};

constexpr Kind kKinds[] = {
    {"leak_losses_fast", leaks<Mistake::losses, Slope::fast>, Leaks::yes},
    {"leak_losses_medium", leaks<Mistake::losses, Slope::medium>, Leaks::yes},
    {"leak_losses_slow", leaks<Mistake::losses, Slope::slow>, Leaks::yes},
    {"leak_containers_fast", leaks<Mistake::containers, Slope::fast>, Leaks::yes},
    {"leak_containers_medium", leaks<Mistake::containers, Slope::medium>, Leaks::yes},
    {"leak_containers_slow", leaks<Mistake::containers, Slope::slow>, Leaks::yes},
    {"leak_hooks_fast", leaks<Mistake::hooks, Slope::fast>, Leaks::yes},
    {"leak_hooks_medium", leaks<Mistake::hooks, Slope::medium>, Leaks::yes},
    {"leak_hooks_slow", leaks<Mistake::hooks, Slope::slow>, Leaks::yes},
    {"leak_caches_fast", leaks<Mistake::caches, Slope::fast>, Leaks::yes},
    {"leak_caches_medium", leaks<Mistake::caches, Slope::medium>, Leaks::yes},
    {"leak_caches_slow", leaks<Mistake::caches, Slope::slow>, Leaks::yes},
    {"leak_metrics_fast", leaks<Mistake::metrics, Slope::fast>, Leaks::yes},
    {"leak_metrics_medium", leaks<Mistake::metrics, Slope::medium>, Leaks::yes},
    {"leak_metrics_slow", leaks<Mistake::metrics, Slope::slow>, Leaks::yes},
    {"batch_stairs", batch_stairs, Leaks::no},
    {"batch_slope", batch_slope, Leaks::no},
    {"steady", steady, Leaks::no},
    {"sawtooth", sawtooth, Leaks::no},
    {"warm_up", warms_up, Leaks::no},
    {"variable_length", variable_length, Leaks::no},
    {"evaluation", evaluations, Leaks::no},
    {"accumulation", accumulation, Leaks::no},
    {"cache_fills", cache_fills, Leaks::no},
    {"fills_slowly", fills_slowly, Leaks::undecidable},
    {"allocator_cache", allocator_cache, Leaks::no},
    {"large_model", large_model, Leaks::no},
    {"jump", jump, Leaks::no},
    {"restarts", restarts, Leaks::no},
    {"leak_rapid", leaks_rapidly, Leaks::yes},
    {"fills_rapidly", fills_rapidly, Leaks::no},
};

}  // namespace

std::vector<std::string_view> kinds() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

LabelledRun generate(std::string_view name, std::uint64_t seed, std::uint64_t number) {
  const Kind* kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind == std::end(kKinds)) std::abort();  // not a name of kinds()
  const auto place = static_cast<std::uint64_t>(kind - kKinds);
  Random random(seed * 1'000'003 + place * 10'007 + number);
  Training training = any_training(random);
  kind->make(training, random);
  LabelledRun run = simulate(training, random);
  run.kind = name;
  run.leaks = kind->leaks;
  // An allocator's reserved memory grows the same way with larger batches and with a leak.
  if (training.batch_size && training.view != View::allocated) run.leaks = Leaks::undecidable;
  return run;
}

}  // namespace tidemark::detectors
