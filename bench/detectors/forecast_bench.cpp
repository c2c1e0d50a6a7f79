// Time of an assessment, and memory of the history of one series.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>

#include "analyze/forecast/forecaster.h"
#include "analyze/forecast/growth_detector.h"
#include "analyze/forecast/usage_history.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{80} << 30;

// Ten a second: a sawtooth of steps with growing peaks, the slowest shape.
UsageSample sample_at(std::int64_t index) {
  const double time = static_cast<double>(index) / 10;
  const double share = 0.3 + 0.1 * std::fmod(time, 1.7) / 1.7 + 0.00005 * time + 0.001 * std::sin(time * 12.9898);
  UsageSample sample;
  sample.time_ns = static_cast<std::uint64_t>(index) * 100'000'000;
  sample.used_bytes = static_cast<std::uint64_t>(share * static_cast<double>(kLimit));
  return sample;
}

void add(benchmark::State& state) {
  Forecaster forecaster;
  std::int64_t index = 0;
  for (auto _ : state) forecaster.add(sample_at(index++));
}

void assess(benchmark::State& state) {
  Forecaster forecaster;
  for (std::int64_t index = 0; index < state.range(0); ++index) forecaster.add(sample_at(index));
  for (auto _ : state) benchmark::DoNotOptimize(forecaster.assess(kLimit));
}

void find_growth(benchmark::State& state) {
  GrowthDetector detector;
  for (std::int64_t index = 0; index < state.range(0); ++index) detector.add(sample_at(index));
  for (auto _ : state) benchmark::DoNotOptimize(detector.assess());
}

// With this many samples.
void history(benchmark::State& state) {
  for (auto _ : state) {
    UsageHistory history;
    for (std::int64_t index = 0; index < state.range(0); ++index) history.add(sample_at(index));
    state.counters["bytes"] = static_cast<double>(history.span_count() * sizeof(UsageSpan));
  }
}

BENCHMARK(add);
BENCHMARK(assess)->Arg(1'000)->Arg(10'000)->Arg(1'000'000);
BENCHMARK(find_growth)->Arg(1'000)->Arg(10'000)->Arg(1'000'000);
BENCHMARK(history)->Arg(10'000)->Arg(18'144'000)->Unit(benchmark::kMillisecond);  // three weeks

}  // namespace
}  // namespace tidemark
