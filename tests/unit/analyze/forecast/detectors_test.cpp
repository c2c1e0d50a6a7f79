// The published table of bench/detectors on a part of its runs: its figures hold for seeds that nothing was tuned on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generate.h"
#include "monitors.h"
#include "recorded.h"
#include "score.h"

namespace tidemark::detectors {
namespace {

constexpr std::uint64_t kSeed = 77;

std::string watch_run(const LabelledRun& run, Score& score) {
  const auto monitor = our_monitor();
  return add_outcome(run, watch(run, *monitor, score.calibration), score);
}

TEST(DetectorsTest, DistinguishesGeneratedRuns) {
  Score score;
  std::string wrong;
  for (const std::string_view kind : kinds()) {
    for (std::uint64_t number = 0; number < 6; ++number) {
      const std::string found = watch_run(generate(kind, kSeed, number), score);
      if (!found.empty()) wrong += fmt::format("{} {}: {}\n", kind, number, found);
    }
  }
  EXPECT_GE(score.recall(), 0.95) << wrong;          // three of 60 that run out
  EXPECT_GE(score.precision(), 0.97) << wrong;       // two of some 75 alarms
  EXPECT_GE(score.leak_recall(), 0.96) << wrong;     // three of 89 leaks
  EXPECT_GE(score.leak_precision(), 0.97) << wrong;  // two of some 88
}

TEST(DetectorsTest, TheSameSeedIsTheSameRun) {
  const LabelledRun one = generate("sawtooth", 5, 3);
  const LabelledRun other = generate("sawtooth", 5, 3);
  ASSERT_EQ(one.samples.size(), other.samples.size());
  EXPECT_EQ(one.samples.back().used_bytes, other.samples.back().used_bytes);
}

TEST(DetectorsTest, RecordedHealthyRunsRaiseNoAlarm) {
  const auto runs = read_recorded(TIDEMARK_DETECTOR_DATA "/recorded.csv.xz");
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  EXPECT_GT(runs.value().size(), 30u);
  Score score;
  std::string wrong;
  for (const LabelledRun& run : runs.value()) {
    const std::string found = watch_run(run, score);
    if (!found.empty()) wrong += fmt::format("{}: {}\n", run.kind, found);
  }
  EXPECT_EQ(score.false_alarms, 0u) << wrong;
}

}  // namespace
}  // namespace tidemark::detectors
