// Snapshots that PyTorch recorded on GPUs, one for each setting: the model, given their requests, reserves what PyTorch
// had.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "import/open.h"
#include "simulate/requests.h"
#include "simulate/simulate.h"
#include "unit/import/recorded_snapshots.h"

namespace tidemark {
namespace {

using pytorch::testing::truth_of;

Simulation simulate_file(const std::string& path, std::vector<std::string> sets = {}) {
  const auto store = open_store(path);
  EXPECT_TRUE(store.ok());
  const Symbols symbols(store->definitions);
  SimulateOptions options;
  options.replayer = Replayer::model;
  options.sets = std::move(sets);
  auto simulation = simulate(*store, symbols, options);
  EXPECT_TRUE(simulation.ok()) << simulation.error().message;
  return std::move(*simulation);
}

// Data missing from snapshots, or a request of another kind.
std::string why_different(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  if (name.starts_with("late")) return "its beginning is lost";
  if (name == "toggled") return "the settings changed while it ran";
  if (name == "unsplit_pool") return "which pools do not split is not known";
  if (name == "oom_capture") return "during the capture of a graph nothing is retried";
  if (name == "roundup_by_size") return "of free blocks of one size, the GPU had another at the lowest address";
  return "";
}

class SimulatedSnapshot : public pytorch::testing::RecordedSnapshot {};

TEST_P(SimulatedSnapshot, RecordedSettingsReproduceReservedMemory) {
  if (const std::string why = why_different(GetParam()); !why.empty()) GTEST_SKIP() << why;
  const nlohmann::json truth = truth_of(GetParam());
  const Simulation simulation = simulate_file(GetParam() + ".pickle.xz");
  ASSERT_EQ(simulation.devices.size(), 1U);
  EXPECT_EQ(simulation.check.peak_reserved(), truth["peak"]["reserved_bytes"].get<std::uint64_t>());
  EXPECT_FALSE(simulation.check.out_of_memory_ns.has_value());
  if (truth.contains("retries")) {
    EXPECT_EQ(simulation.check.retries(), truth["retries"].get<std::uint64_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, SimulatedSnapshot, ::testing::ValuesIn(pytorch::testing::snapshots_of_settings()),
                         pytorch::testing::test_name);

// The program emptied the cache (scripts/record_snapshots.py) and never ran out of memory; the trace has five runs of
// segment_free or segment_unmap.
TEST(Requests, ReleasesOfTheProgramAreRequests) {
  for (const char* name : {"empty_cache", "empty_cache_expandable"}) {
    const auto store = open_store(TIDEMARK_SNAPSHOTS "/" + std::string(name) + ".pickle.xz");
    ASSERT_TRUE(store.ok());
    const auto requests = find_requests(*store, std::nullopt);
    ASSERT_TRUE(requests.ok());
    int emptied = 0;
    visit_requests(*store, *requests, [&](const Request& request) {
      emptied += request.kind == Request::Kind::empty_cache;
      return true;
    });
    EXPECT_EQ(emptied, 5) << name;
    EXPECT_FALSE(requests->devices[0].limit.has_value()) << name;
  }
}

// One program on an H200, three times: its requests with the default settings predict what the others reserve.
TEST(SimulatedProgram, OtherSettingsReserveWhatTheyDidOnTheGpu) {
  const std::string folder = TIDEMARK_SHARED_SNAPSHOTS "/";
  if (!std::filesystem::exists(folder + "varlen.pickle.xz")) GTEST_SKIP();
  const Simulation simulation =
      simulate_file(folder + "varlen.pickle.xz", {"max_split_size_mb:64", "expandable_segments:True"});
  EXPECT_EQ(simulation.check.peak_reserved(), 19'614'662'656U);
  EXPECT_EQ(simulation.reserved_error(), 0);
  ASSERT_EQ(simulation.runs.size(), 2U);
  EXPECT_EQ(simulation.runs[0].settings, "expandable_segments:True");
  EXPECT_EQ(simulation.runs[0].peak_reserved(), 9'743'368'192U);
  EXPECT_EQ(simulation.runs[1].peak_reserved(), 83'235'962'880U);
  EXPECT_EQ(simulation.runs[1].devices[0].segments, 289U);
  EXPECT_EQ(simulation.saving(simulation.runs[0]), 19'614'662'656 - 9'743'368'192);
}

// Failed in its sixth step, after 4 retries; 83 segments in all.
TEST(SimulatedProgram, RequestsFailWhereTheyDid) {
  const std::string path = TIDEMARK_SHARED_SNAPSHOTS "/oom.pickle.xz";
  if (!std::filesystem::exists(path)) GTEST_SKIP();
  const Simulation simulation = simulate_file(path);
  EXPECT_EQ(simulation.check.retries(), 4U);
  EXPECT_EQ(simulation.check.devices[0].segments, 83U);
  EXPECT_EQ(simulation.check.passed_failures, 0U);
  EXPECT_EQ(simulation.check.peak_reserved(), 4'454'350'848U);
}

}  // namespace
}  // namespace tidemark
