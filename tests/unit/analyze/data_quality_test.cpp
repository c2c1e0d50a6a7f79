#include "analyze/common/data_quality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/store/store_scenario.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kCpu;
using testing::kGpu;
using testing::Scenario;

DataQuality quality_of(const Scenario& scenario) {
  const Overview overview = scenario.overview();
  return analyze_data_quality(overview, Symbols(overview.definitions));
}

std::vector<std::string> kinds(const DataQuality& quality) {
  std::vector<std::string> names;
  for (const QualityNote& note : quality.notes) names.push_back(note.kind);
  return names;
}

TEST(DataQuality, SaysNothingOfAWholeRecording) {
  Scenario scenario;
  scenario.allocate(1, "a", 1);
  const DataQuality quality = quality_of(scenario);
  EXPECT_TRUE(quality.complete);
  EXPECT_THAT(quality.notes, IsEmpty());
}

TEST(DataQuality, ListsLossesWorstFirst) {
  Scenario scenario;
  scenario.definitions.losses = {
      {Loss::Kind::stack_truncated, 3, ""}, {Loss::Kind::size_limit, 1, "2 GiB"}, {Loss::Kind::ring_full, 1234, ""}};
  const DataQuality quality = quality_of(scenario);
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(kinds(quality), ElementsAre("ring_full", "size_limit", "stack_truncated"));
  EXPECT_EQ(quality.notes[0].severity, "error");
  EXPECT_EQ(quality.notes[0].count, 1234U);
  EXPECT_THAT(quality.notes[0].text, HasSubstr("1,234 events"));
  EXPECT_THAT(quality.notes[1].text, HasSubstr("(2 GiB)"));
}

TEST(DataQuality, StacksThatAreMissingLeaveTheEventsComplete) {
  Scenario scenario;
  scenario.definitions.losses = {{Loss::Kind::python_unsupported, 1, "Python 3.8"},
                                 {Loss::Kind::native_unsupported, 1, ""},
                                 {Loss::Kind::stack_truncated, 1, ""}};
  const DataQuality quality = quality_of(scenario);
  EXPECT_TRUE(quality.complete);
  EXPECT_EQ(quality.notes.size(), 3U);
}

TEST(DataQuality, NoticesAKilledRecorder) {
  Scenario scenario;
  scenario.definitions.end.reset();
  const DataQuality quality = quality_of(scenario);
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(kinds(quality), ElementsAre("recorder_killed"));
}

TEST(DataQuality, NoticesARecordingThatStoppedBeforeTheProgram) {
  Scenario scenario;
  scenario.definitions.end = EndInfo{10, false};
  EXPECT_FALSE(quality_of(scenario).complete);
  EXPECT_THAT(kinds(quality_of(scenario)), ElementsAre("stopped_early"));
}

TEST(DataQuality, CountsPausesUnmatchedFreesAndWhatWasThereBefore) {
  Scenario scenario;
  scenario.totals(kGpu, 2048, 4096);
  scenario.allocate(1, "a", 100, kGpu);
  scenario.free_unknown(2, kCpu);
  scenario.mark(EventKind::pause, 1000);
  scenario.mark(EventKind::resume, 4200);
  const DataQuality quality = quality_of(scenario);
  EXPECT_FALSE(quality.complete);
  EXPECT_THAT(kinds(quality), ElementsAre("paused", "baseline", "unmatched_frees"));
  EXPECT_THAT(quality.notes[0].text, HasSubstr("paused the recording 1 time, 3.2 us in all"));
  EXPECT_THAT(quality.notes[1].text, HasSubstr("2.0 KiB on cuda:0"));
  EXPECT_EQ(quality.notes[2].count, 1U);
}

TEST(DataQuality, NamesFilesWithoutSymbolsThatWereAskedFor) {
  Scenario scenario;
  const LocationId location = scenario.native("/nonexistent/libfoo.so", 0x10);
  const Overview overview = scenario.overview();
  Symbols symbols(overview.definitions);
  EXPECT_THAT(analyze_data_quality(overview, symbols).notes, IsEmpty());
  (void)symbols.name(location);
  const DataQuality quality = analyze_data_quality(overview, symbols);
  EXPECT_THAT(kinds(quality), ElementsAre("missing_symbols"));
  EXPECT_THAT(quality.notes[0].text, HasSubstr("/nonexistent/libfoo.so"));
}

}  // namespace
}  // namespace tidemark
