#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/common/recording_info.h"
#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

DataQuality quality_of(const Scenario& scenario) {
  const Overview overview = scenario.overview();
  return analyze_data_quality(overview, Symbols(overview.definitions));
}

std::vector<std::string> ids(const DataQuality& quality) {
  std::vector<std::string> names;
  for (const QualityIssue& issue : quality.issues) names.emplace_back(name_of(issue.id));
  return names;
}

TEST(DataQuality, CompleteRecordingHasNoIssues) {
  Scenario scenario;
  scenario.allocate(1, "a", 1);
  const DataQuality quality = quality_of(scenario);
  EXPECT_TRUE(quality.complete);
  EXPECT_THAT(quality.issues, IsEmpty());
}

TEST(DataQuality, ListsLossesWorstFirst) {
  Scenario scenario;
  scenario.definitions.losses = {
      {Loss::Kind::stack_truncated, 3}, {Loss::Kind::size_limit, 1, "", 4096}, {Loss::Kind::ring_full, 1234}};
  const DataQuality quality = quality_of(scenario);
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(ids(quality), ElementsAre("ring_full", "size_limit", "stack_truncated"));
  EXPECT_EQ(quality.issues[0], (QualityIssue{QualityId::ring_full, 1234}));
  EXPECT_EQ(quality.issues[1], (QualityIssue{QualityId::size_limit, 1, {{"limit_bytes", QualityBytes{4096}}}}));
}

TEST(DataQuality, StacksThatAreMissingLeaveTheEventsComplete) {
  Scenario scenario;
  scenario.definitions.losses = {{Loss::Kind::python_unsupported, 1, "Python 3.8"},
                                 {Loss::Kind::native_unsupported, 1},
                                 {Loss::Kind::stack_truncated, 1}};
  const DataQuality quality = quality_of(scenario);
  EXPECT_TRUE(quality.complete);
  EXPECT_EQ(quality.issues.size(), 3U);
}

TEST(DataQuality, NoticesAKilledRecorder) {
  Scenario scenario;
  scenario.definitions.end.reset();
  const DataQuality quality = quality_of(scenario);
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(ids(quality), ElementsAre("recorder_killed"));
}

TEST(DataQuality, DoesNotTakeARecordingInProgressForOneThatWasCutOff) {
  Scenario scenario;
  scenario.definitions.end.reset();
  Overview overview = scenario.overview();
  overview.source.growing = true;
  const DataQuality quality = analyze_data_quality(overview, Symbols(overview.definitions));
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(ids(quality), ElementsAre("in_progress"));
}

TEST(DataQuality, NoticesARecordingThatStoppedBeforeTheProgram) {
  Scenario scenario;
  scenario.definitions.end = EndInfo{10, false};
  EXPECT_FALSE(quality_of(scenario).complete);
  EXPECT_THAT(ids(quality_of(scenario)), ElementsAre("stopped_early"));
}

TEST(DataQuality, CountsPausesUnmatchedFreesAndWhatWasThereBefore) {
  Scenario scenario;
  scenario.totals(kGpu, 2048, 4096);
  scenario.allocate(1, "a", 100, kGpu);
  scenario.free_unknown(2, kCpu);
  scenario.mark(EventKind::pause, 1000);
  scenario.mark(EventKind::resume, 4200);
  const DataQuality quality = quality_of(scenario);
  EXPECT_TRUE(quality.complete);  // nothing is missing that the program wanted to be seen
  EXPECT_THAT(ids(quality), ElementsAre("paused", "baseline", "unmatched_frees"));
  EXPECT_EQ(quality.issues[0], (QualityIssue{QualityId::paused, 1, {{"duration_ns", QualityDuration{3200}}}}));
  EXPECT_EQ(quality.issues[1], (QualityIssue{QualityId::baseline, 2048, {{"device", "cuda:0"}}}));
  EXPECT_EQ(quality.issues[2], (QualityIssue{QualityId::unmatched_frees, 1, {{"device", "cpu"}}}));
}

TEST(DataQuality, NamesFilesWithoutSymbolsThatWereAskedFor) {
  Scenario scenario;
  const LocationId location = scenario.native("/nonexistent/libfoo.so", 0x10);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  EXPECT_THAT(analyze_data_quality(overview, symbols).issues, IsEmpty());
  (void)symbols.name(location);
  const DataQuality quality = analyze_data_quality(overview, symbols);
  EXPECT_THAT(ids(quality), ElementsAre("missing_symbols"));
  const QualityIssue missing{
      QualityId::missing_symbols,
      1,
      {{"file", "/nonexistent/libfoo.so"}, {"reason", "cannot be opened: No such file or directory"}}};
  EXPECT_EQ(quality.issues[0], missing);
}

}  // namespace
}  // namespace tidemark
