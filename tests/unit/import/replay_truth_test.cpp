// Snapshots that PyTorch recorded on GPUs, replayed, against the counters of its allocator (torch.cuda.memory_stats()).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "import/pytorch_snapshot/read_snapshot.h"
#include "unit/import/recorded_snapshots.h"
#include "unit/import/replay_support.h"

namespace tidemark::pytorch::testing {
namespace {

using nlohmann::json;

MemoryTotals totals(const json& counters) {
  return {counters.at("allocated_bytes"), counters.at("active_bytes"), counters.at("reserved_bytes"),
          counters.at("requested_bytes"), counters.at("inactive_split_bytes")};
}

/// The keys that the shared files have.
void expect_named_peaks(const json& truth, const MemoryTotals& peak) {
  const auto expect = [&](const char* name, std::uint64_t actual) {
    if (truth.contains(name)) {
      EXPECT_EQ(actual, truth.at(name).get<std::uint64_t>()) << name;
    }
  };
  expect("peak_alloc", peak.allocated);
  expect("active_peak", peak.active);
  expect("peak_reserved", peak.reserved);
  expect("inactive_split_peak", peak.inactive_split);
  // Printed with one decimal.
  const auto mebibytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); };
  if (truth.contains("peak_alloc_mib")) {
    EXPECT_NEAR(mebibytes(peak.allocated), truth["peak_alloc_mib"], 0.05);
  }
  if (truth.contains("peak_reserved_mib")) {
    EXPECT_NEAR(mebibytes(peak.reserved), truth["peak_reserved_mib"], 0.05);
  }
}

void expect_peaks(const json& truth, const MemoryTotals& peak) {
  if (truth.contains("peak")) {
    EXPECT_EQ(peak, totals(truth["peak"]));
  } else {
    expect_named_peaks(truth, peak);
  }
}

void expect_final_state(const ReplayQuality& quality) {
  EXPECT_TRUE(quality.has_final_segments);
  EXPECT_EQ(quality.final_blocks_missing, 0U);
  EXPECT_EQ(quality.final_blocks_extra, 0U);
  EXPECT_EQ(quality.final_blocks_different, 0U);
  EXPECT_EQ(quality.final_segments_missing, 0U);
  EXPECT_EQ(quality.final_segments_extra, 0U);
  EXPECT_EQ(quality.snapshot_mismatches, 0U);
}

/// A step's entries have its number, except entries of other threads than the main one. Its counters hold after its
/// last entry, or some entries before: the script allocates and frees a little between steps.
void expect_steps(const json& truth, const Snapshot& snapshot, const CheckingSink& sink, std::uint64_t uncertain) {
  const auto& texts = snapshot.traces.front().user_metadata;
  const auto step_of = [&](const EntryText& text) { return std::stoi(snapshot.definitions.strings[text.text.value]); };
  std::uint32_t begin = 0;
  std::size_t checked = 0;
  for (const json& step : truth.at("steps")) {
    const int number = std::stoi(step.at("step").get<std::string>());
    const auto later =
        std::find_if(texts.begin(), texts.end(), [&](const auto& text) { return step_of(text) > number; });
    const std::size_t entries = snapshot.traces.front().entries.size();
    const auto end = static_cast<std::uint32_t>(later != texts.end() ? later->entry : entries);
    if (end == 0) continue;  // lost
    bool found = false;
    for (std::uint32_t i = end; i > 0 && i >= begin && !found; --i) {
      found = agree(sink.after(i - 1), totals(step), uncertain);
    }
    EXPECT_TRUE(found) << "step " << number;
    begin = end;
    ++checked;
  }
  EXPECT_GE(checked, 3U);
}

class ReplayWithoutSettings : public ::testing::TestWithParam<std::string> {};

// As written by torch before 2.3.
TEST_P(ReplayWithoutSettings, FindsTheRounding) {
  auto snapshot = read_snapshot(GetParam() + ".pickle.xz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  snapshot->settings.reset();
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(*snapshot, sink);
  expect_peaks(truth_of(GetParam()), summary.peak);
  EXPECT_THAT(names_of(summary.quality), ::testing::ElementsAre("no_settings"));
}

INSTANTIATE_TEST_SUITE_P(Settings, ReplayWithoutSettings,
                         ::testing::Values(TIDEMARK_SNAPSHOTS "/default", TIDEMARK_SNAPSHOTS "/roundup_4",
                                           TIDEMARK_SNAPSHOTS "/garbage_collection_roundup"),
                         test_name);

class ReplayTruth : public ::testing::TestWithParam<std::string> {};

TEST_P(ReplayTruth, MatchesTheAllocatorsCounters) {
  if (!std::filesystem::exists(GetParam() + ".pickle.xz")) GTEST_SKIP() << GetParam() << " is not there";
  const json truth = truth_of(GetParam());
  const auto snapshot = read_snapshot(GetParam() + ".pickle.xz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  ASSERT_EQ(snapshot->traces.size(), 1U);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(*snapshot, sink, snapshot->traces.front().device);

  expect_final_state(summary.quality);
  if (truth.value("complete", true)) {
    EXPECT_EQ(summary.start, MemoryTotals{});
    // No file records when its settings were switched.
    if (truth.at("kind") != "toggled") {
      EXPECT_THAT(names_of(summary.quality), ::testing::IsEmpty());
    }
    expect_peaks(truth, summary.peak);
    if (truth.contains("ooms")) {
      EXPECT_EQ(sink.ooms.size(), truth["ooms"].get<std::size_t>());
    }
  }
  // The threads that allocated in "threads" carry no numbers.
  if (truth.contains("steps") && !snapshot->traces.front().user_metadata.empty()) {
    expect_steps(truth, *snapshot, sink, summary.quality.uncertain_bytes);
  }
}

TEST(ReplayTruthFiles, Exist) {
  EXPECT_EQ(snapshots_of_settings().size(), 33U);
}

// Values from make_small.py.
TEST(ReplayTruthFiles, SmallSnapshotHasThePeaksWorkedOutByHand) {
  const auto snapshot = read_snapshot(TIDEMARK_SNAPSHOTS "/small.pickle");
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  CheckingSink first;
  const MemoryTotals peak = replay_checked(*snapshot, first, 0).peak;
  EXPECT_EQ(peak.allocated, 18 * kMiB + 1024);
  EXPECT_EQ(peak.reserved, 22 * kMiB);
  CheckingSink second;
  const MemoryTotals other = replay_checked(*snapshot, second, 1).peak;
  EXPECT_EQ(other.allocated, 3 * kMiB);
  EXPECT_EQ(other.reserved, 20 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(Settings, ReplayTruth, ::testing::ValuesIn(snapshots_of_settings()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ReplayTruth,
                         ::testing::ValuesIn(shared_snapshots({"healthy", "lora_native_stacks", "lora_python_stacks",
                                                               "oom", "varlen", "varlen_expandable",
                                                               "varlen_max_split_64"})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(More, ReplayTruth, ::testing::ValuesIn(more_snapshots()), test_name);

}  // namespace
}  // namespace tidemark::pytorch::testing
