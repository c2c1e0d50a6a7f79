// The cost of logging a metric: by name, and by a handle; alone, and with other threads on the same metric.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "inprocess/performance/training_monitor.h"

namespace tidemark {
namespace {

TrainingMonitor& monitor() {
  static TrainingMonitor shared({});
  return shared;
}

// Values of a training loss: some decades, never the same.
double next(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<double>(state >> 40) * 1e-6 + 1e-3;
}

void log_by_name(benchmark::State& state) {
  std::uint64_t value = 1;
  for (auto _ : state) monitor().log("train/loss", next(value));
}
BENCHMARK(log_by_name)->Threads(1)->Threads(2)->Threads(8);

void log_by_handle(benchmark::State& state) {
  NamedMetric* const metric = monitor().metric("train/accuracy");
  std::uint64_t value = 1;
  for (auto _ : state) monitor().log(metric, next(value));
}
BENCHMARK(log_by_handle)->Threads(1)->Threads(2)->Threads(8);

// With the maximum number of names.
void log_among_many(benchmark::State& state) {
  static TrainingMonitor many({});
  static const auto names = [] {
    std::vector<std::string> made;
    for (std::size_t n = 0; n < MetricTable::kMaxNames; ++n) made.push_back("layers." + std::to_string(n) + ".grad");
    return made;
  }();
  std::uint64_t value = 1;
  std::size_t name = 0;
  for (auto _ : state) {
    many.log(names[name], next(value));
    name = (name + 7) % names.size();
  }
}
BENCHMARK(log_among_many);

void step_with_two_parts(benchmark::State& state) {
  for (auto _ : state) {
    for (const StepPart part : {StepPart::data, StepPart::forward}) {
      const std::int64_t began = StepTimes::now_ns();
      monitor().part_began(began);
      monitor().part_ended(part, began);
    }
    monitor().step(32);
  }
}
BENCHMARK(step_with_two_parts);

void report(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(monitor().report());
}
BENCHMARK(report);

}  // namespace
}  // namespace tidemark

BENCHMARK_MAIN();
