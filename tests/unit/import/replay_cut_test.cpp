// Traces without their beginning: recorded ones are cut, and every later entry must find the totals of the whole trace,
// or the replay must report the number of uncertain bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "import/pytorch_snapshot/read_snapshot.h"
#include "unit/import/recorded_snapshots.h"
#include "unit/import/replay_support.h"

namespace tidemark::pytorch::testing {
namespace {

class ReplayCut : public ::testing::TestWithParam<std::string> {};

TEST_P(ReplayCut, AgreesWithTheWholeTrace) {
  if (!std::filesystem::exists(GetParam() + ".pickle.xz")) GTEST_SKIP() << GetParam() << " is not there";
  auto snapshot = read_snapshot(GetParam() + ".pickle.xz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  DeviceTrace& trace = snapshot->traces.front();
  const std::vector<TraceEntry> entries = trace.entries;
  const auto last = static_cast<std::uint32_t>(entries.size() - 1);
  CheckingSink whole;
  replay_checked(*snapshot, whole, trace.device);
  for (const double part : {0.01, 0.3, 0.6, 0.9, 0.995}) {
    const auto cut = static_cast<std::uint32_t>(part * static_cast<double>(entries.size()));
    SCOPED_TRACE("without the first " + std::to_string(cut) + " entries");
    trace.entries.assign(entries.begin() + cut, entries.end());
    CheckingSink rest;
    const ReplayQuality quality = replay_checked(*snapshot, rest, trace.device).quality;
    // Blocks of expandable segments are never larger than the rounded request.
    if (GetParam().ends_with("_expandable")) {
      EXPECT_EQ(quality.uncertain_blocks, 0U);
    }
    const std::uint64_t unknown = quality.uncertain_bytes + quality.guessed_bytes;
    for (std::uint32_t i = cut; i < entries.size(); ++i) {
      ASSERT_TRUE(agree(rest.after(i - cut), whole.after(i), unknown)) << "entry " << i;
    }
    EXPECT_EQ(rest.after(last - cut), whole.after(last));
    EXPECT_EQ(quality.exact(), cut == 0) << "of some ten entries 1% is none";
    EXPECT_EQ(quality.final_blocks_missing + quality.final_blocks_extra + quality.final_blocks_different, 0U);
    EXPECT_EQ(quality.final_segments_missing + quality.final_segments_extra, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ReplayCut, ::testing::ValuesIn(snapshots_of_settings()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ReplayCut,
                         ::testing::ValuesIn(shared_snapshots({"healthy", "oom", "varlen", "varlen_expandable"})),
                         test_name);

}  // namespace
}  // namespace tidemark::pytorch::testing
