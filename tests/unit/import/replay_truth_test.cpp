// Snapshots that PyTorch recorded on GPUs, replayed, against the counters of its allocator (torch.cuda.memory_stats()).
//
// tests/data/snapshots: one for each setting of the allocator, recorded by scripts/record_snapshots.py, with the
// counters after every step. ../shared/data/snapshots: larger ones, skipped where they are not there.
// TIDEMARK_MORE_SNAPSHOTS names a folder with others to check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "import/pytorch_snapshot/snapshot_reader.h"
#include "unit/import/replay_support.h"

namespace tidemark::pytorch::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string without_suffix(const fs::path& truth) {
  const std::string name = truth.string();
  return name.substr(0, name.size() - std::string(".truth.json").size());
}

/// The snapshots in a folder, without suffix.
std::vector<std::string> in_folder(const char* folder) {
  std::vector<std::string> found;
  if (folder == nullptr) return found;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().string().ends_with(".truth.json")) found.push_back(without_suffix(file.path()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> shared() {
  std::vector<std::string> paths;
  for (const char* name : {"healthy", "lora_native_stacks", "lora_python_stacks", "oom", "varlen", "varlen_expandable",
                           "varlen_max_split_64"}) {
    paths.push_back(std::string(TIDEMARK_SHARED_SNAPSHOTS "/") + name);
  }
  return paths;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return fs::path(info.param).filename().string();
}

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

/// Whether totals are those expected, up to the bytes that the replay says it does not know.
bool agree(const MemoryTotals& actual, const MemoryTotals& expected, std::uint64_t uncertain) {
  const auto near = [&](std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) <= uncertain; };
  return actual.reserved == expected.reserved && actual.requested == expected.requested &&
         near(actual.allocated, expected.allocated) && near(actual.active, expected.active) &&
         near(actual.inactive_split, expected.inactive_split);
}

/// A step's entries carry its number, but for those of other threads than the main one. Its counters hold after its
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

class ReplayTruth : public ::testing::TestWithParam<std::string> {};

TEST_P(ReplayTruth, IsWhatTheAllocatorCounted) {
  if (!fs::exists(GetParam() + ".truth.json")) GTEST_SKIP() << GetParam() << " is not there";
  const json truth = json::parse(std::ifstream(GetParam() + ".truth.json"));
  const auto snapshot = read_snapshot(GetParam() + ".pickle.xz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  ASSERT_EQ(snapshot->traces.size(), 1U);
  CheckingSink sink;
  const ReplaySummary summary = replay_checked(*snapshot, sink, snapshot->traces.front().device);

  expect_final_state(summary.quality);
  if (truth.value("complete", true)) {
    EXPECT_EQ(summary.start, MemoryTotals{});
    expect_peaks(truth, summary.peak);
    if (truth.contains("ooms")) {
      EXPECT_EQ(sink.ooms.size(), truth["ooms"].get<std::size_t>());
    }
  }
  // The threads that allocated in "threads" carry no numbers.
  if (truth.contains("steps") && !snapshot->traces.front().user_metadata.empty()) {
    expect_steps(truth, *snapshot, sink, summary.quality.uncertain_bytes);
  }
  if (::testing::Test::HasFailure()) {
    for (const std::string& sentence : summary.quality.sentences()) ADD_FAILURE() << sentence;
  }
}

TEST(ReplayTruthFiles, AreThere) {
  EXPECT_EQ(in_folder(TIDEMARK_SNAPSHOTS).size(), 23U);
}

INSTANTIATE_TEST_SUITE_P(Settings, ReplayTruth, ::testing::ValuesIn(in_folder(TIDEMARK_SNAPSHOTS)), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ReplayTruth, ::testing::ValuesIn(shared()), test_name);
INSTANTIATE_TEST_SUITE_P(More, ReplayTruth, ::testing::ValuesIn(in_folder(std::getenv("TIDEMARK_MORE_SNAPSHOTS"))),
                         test_name);

}  // namespace
}  // namespace tidemark::pytorch::testing
