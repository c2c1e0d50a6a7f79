#include "inprocess/performance/metric_values.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "inprocess/performance/metric_table.h"
#include "inprocess/performance/step_times.h"

namespace tidemark {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(MetricValues, EmptyWithoutValues) {
  const ValueSummary summary = MetricValues().summary();
  EXPECT_EQ(summary.moments.count, 0U);
  EXPECT_EQ(summary.p50, std::nullopt);
  EXPECT_EQ(summary.last, std::nullopt);
  EXPECT_EQ(summary.moments.deviation(), std::nullopt);
}

TEST(MetricValues, NonFiniteValuesAreCountedSeparately) {
  MetricValues values;
  for (const double value :
       {1.0, std::nan(""), -std::numeric_limits<double>::infinity(), 3.0, std::numeric_limits<double>::infinity()}) {
    values.add(value);
  }
  const ValueSummary summary = values.summary();
  EXPECT_EQ(summary.moments.count, 2U);
  EXPECT_EQ(summary.moments.mean, 2);
  EXPECT_EQ(summary.nan_count, 1U);
  EXPECT_EQ(summary.infinite_count, 2U);
  EXPECT_EQ(summary.last, std::numeric_limits<double>::infinity());
}

TEST(MetricValues, QuantilesAreNeverBeyondTheExtremes) {
  MetricValues values;
  for (int n = 0; n < 1000; ++n) values.add(0.3);
  const ValueSummary summary = values.summary();
  EXPECT_EQ(summary.p50, 0.3);
  EXPECT_EQ(summary.p99, 0.3);
}

// More threads than shards, on one metric, with a concurrent reader.
TEST(MetricValues, ManyThreadsLoseNothing) {
  constexpr int kThreads = 20;
  constexpr int kEach = 5000;
  MetricValues values;
  std::atomic<bool> done = false;
  RunningMoments recent;
  std::thread reader([&] {
    while (!done) {
      (void)values.summary();
      recent.merge(values.take_recent());
    }
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&values, thread] {
      for (int n = 0; n < kEach; ++n) values.add(thread * kEach + n);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  recent.merge(values.take_recent());
  // 0, 1, … 99999.
  const double count = kThreads * kEach;
  const ValueSummary summary = values.summary();
  EXPECT_EQ(summary.moments.count, static_cast<std::uint64_t>(count));
  EXPECT_NEAR(summary.moments.mean, (count - 1) / 2, 1e-6);
  EXPECT_NEAR(*summary.moments.deviation(), std::sqrt((count * count - 1) / 12), 1e-3);
  EXPECT_EQ(summary.moments.lowest, 0);
  EXPECT_EQ(summary.moments.highest, count - 1);
  EXPECT_NEAR(*summary.p90, 0.9 * (count - 1), 0.0101 * 0.9 * count);
  EXPECT_EQ(recent.count, static_cast<std::uint64_t>(count));
  EXPECT_NEAR(recent.mean, (count - 1) / 2, 1e-6);
}

TEST(MetricTable, FindsEachNameOnceAndHasABound) {
  MetricTable table;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&table] {
      for (std::size_t n = 0; n < MetricTable::kMaxNames; ++n) {
        NamedMetric* const metric = table.find("metric " + std::to_string(n));
        ASSERT_NE(metric, nullptr);
        metric->values.add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.size(), MetricTable::kMaxNames);
  for (std::size_t n = 0; n < table.size(); ++n) {
    EXPECT_EQ(table.find(table[n].name), &table[n]);
    EXPECT_EQ(table[n].values.summary().moments.count, 4U);
  }
  EXPECT_EQ(table.find("one too many"), nullptr);
  EXPECT_NE(table.find("metric 7"), nullptr);
}

TEST(MetricTable, LongNamesAreCut) {
  MetricTable table;
  const std::string name(1000, 'x');
  NamedMetric* const metric = table.find(name);
  EXPECT_EQ(metric->name.size(), MetricTable::kMaxNameBytes);
  EXPECT_EQ(table.find(name + "y"), metric);
}

TEST(ValueHistory, JoinsNeighboursAndKeepsExtremesAndMeans) {
  ValueHistory history;
  constexpr std::uint64_t kCount = 10 * ValueHistory::kCapacity;
  for (std::uint64_t n = 0; n < kCount; ++n) {
    RunningMoments moment;
    moment.add(static_cast<double>(n));
    history.add(n, n + 1, moment);
  }
  EXPECT_LE(history.points().size(), ValueHistory::kCapacity);
  double sum = 0;
  std::uint64_t count = 0;
  std::uint64_t next = 0;
  for (const HistoryMoment& point : history.points()) {
    EXPECT_EQ(point.begin_ns, next);
    next = point.end_ns;
    EXPECT_EQ(point.lowest, static_cast<double>(point.begin_ns));
    EXPECT_EQ(point.highest, static_cast<double>(point.end_ns - 1));
    sum += point.mean * static_cast<double>(point.count);
    count += point.count;
  }
  EXPECT_EQ(next, kCount);
  EXPECT_EQ(count, kCount);
  EXPECT_DOUBLE_EQ(sum, static_cast<double>(kCount * (kCount - 1) / 2));
}

TEST(StepTimes, StepsPartsAndStalls) {
  StepTimes times;
  std::int64_t now = 5 * kMs;
  // Two steps of 100 ms: the first waits 5 ms for its data, the second 40 ms.
  for (const std::int64_t wait : {5, 40}) {
    times.part_began(now);
    times.part_ended(StepPart::data, now, now + wait * kMs);
    times.part_began(now + wait * kMs);
    times.part_ended(StepPart::forward, now + wait * kMs, now + (wait + 20) * kMs);
    now += 100 * kMs;
    times.step_ended(32, now);
  }
  const StepSummary summary = times.summary();
  EXPECT_EQ(summary.steps, 2U);
  EXPECT_EQ(summary.samples, 64U);
  EXPECT_EQ(summary.timed_samples, 64U);
  EXPECT_NEAR(summary.timed_sample_seconds, 0.2, 1e-12);
  EXPECT_NEAR(summary.step_seconds.moments.mean, 0.1, 1e-12);
  EXPECT_NEAR(summary.parts[0].moments.sum(), 0.045, 1e-12);
  EXPECT_NEAR(summary.parts[1].moments.sum(), 0.04, 1e-12);
  EXPECT_EQ(summary.parts[2].moments.count, 0U);
  EXPECT_EQ(summary.stalled_steps, 1U);
  EXPECT_NEAR(summary.stalled_seconds, 0.04, 1e-12);
}

TEST(StepTimes, StepWithUnknownBeginningHasNoDuration) {
  StepTimes times;
  times.step_ended(8, 10 * kMs);
  EXPECT_EQ(times.summary().steps, 1U);
  EXPECT_EQ(times.summary().step_seconds.moments.count, 0U);
  EXPECT_EQ(times.summary().timed_samples, 0U);
  times.step_ended(8, 30 * kMs);
  EXPECT_NEAR(times.summary().step_seconds.moments.mean, 0.02, 1e-12);
}

}  // namespace
}  // namespace tidemark
