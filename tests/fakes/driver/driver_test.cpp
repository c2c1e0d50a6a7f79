// `tidemark run --driver on`: what a recording says of the driver's memory is what the driver itself says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "recorded.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr std::int64_t kMiB = 1 << 20;

struct Options {
  json script = json::object();
  std::string run = "--no-samples --driver on --stacks native";
  std::string environment = {};
  std::string driver = FAKES_DRIVER;
  bool has_cupti = true;
};

struct Result {
  int code = -1;
  std::string output;
  std::string messages;  ///< on stderr
  std::vector<Change> said;
  std::vector<json> log;  ///< all lines of the driver and of CUPTI
  std::vector<DriverRecording> recordings;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class DriverTest : public ::testing::Test {
 protected:
  Result run(const std::string& scene, const Options& options = {}) {
    const std::string folder = folder_.path();
    const std::string script = folder_.write("script.json", options.script.dump());
    const std::string libraries = options.driver + (options.has_cupti ? ":" FAKES_CUPTI : "");
    const std::string command = options.environment + " LD_LIBRARY_PATH=" FAKES_NVML_FOLDER ":" + libraries +
                                " FAKES_CUDA=" + script + " FAKES_CUDA_LOG=" + folder +
                                "/log timeout -k 5 60 " TIDEMARK_PROGRAM " run " + options.run + " -o " + folder +
                                "/run.tide -- " FAKES_DRIVER_PROGRAM " " + scene + " " FAKES_LIBRARIES " >" + folder +
                                "/out 2>" + folder + "/err";
    Result result;
    result.code = WEXITSTATUS(std::system(command.c_str()));
    result.output = text_of(folder + "/out");
    result.messages = text_of(folder + "/err");
    result.said = said_changes(folder + "/log");
    std::istringstream lines(text_of(folder + "/log"));
    for (std::string line; std::getline(lines, line);) result.log.push_back(json::parse(line));
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".tide") result.recordings.push_back(driver_recording(entry.path()));
    }
    return result;
  }

  TemporaryFolder folder_;
};

std::uint64_t delivered(const Result& result) {
  std::uint64_t count = 0;
  for (const json& line : result.log) count += line.value("delivered", std::uint64_t{0});
  return count;
}

std::vector<Change> of_process(const std::vector<Change>& changes, std::int64_t pid) {
  std::vector<Change> out;
  std::copy_if(changes.begin(), changes.end(), std::back_inserter(out),
               [pid](const Change& change) { return change.pid == pid; });
  return out;
}

/// The first place where two lists differ: long lists are not for reading.
void expect_changes(const std::vector<Change>& found, const std::vector<Change>& wanted) {
  const auto [at, other] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (at == found.end() && other == wanted.end()) return;
  ADD_FAILURE() << "change " << at - found.begin() << " of " << found.size() << " and " << wanted.size()
                << "\n  recorded " << (at == found.end() ? "the end" : ::testing::PrintToString(*at)) << "\n  said     "
                << (other == wanted.end() ? "the end" : ::testing::PrintToString(*other));
}

/// All changes of one process are there, in their order, with their owners, and nothing is said to be missing.
void expect_recorded(const Result& result) {
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U) << result.messages;
  const DriverRecording& recording = result.recordings[0];
  expect_changes(recording.changes, result.said);
  EXPECT_THAT(recording.missing, IsEmpty());
  EXPECT_EQ(recording.unsized_frees, 0U);
  EXPECT_TRUE(recording.in_time_order);
}

TEST_F(DriverTest, BlocksComeAndGo) {
  const Result result = run("plain");
  EXPECT_GT(result.said.size(), 250U);
  expect_recorded(result);
  EXPECT_GE(delivered(result), 2 * result.said.size()) << "each call at its entry and its exit";
}

TEST_F(DriverTest, LibrariesOwnWhatTheyTake) {
  const Result result = run("libraries");
  expect_recorded(result);
  // The program's 3, two communicators of 4 + 1 and a workspace of 32; one communicator stays.
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{5 * kMiB, 45 * kMiB})));
  std::map<std::string, std::int64_t> taken;
  for (const Change& change : result.recordings.at(0).changes) {
    if (change.bytes > 0) taken[change.owner] += change.bytes;
  }
  EXPECT_THAT(taken, ElementsAre(Pair("fakes_driver_program", 3 * kMiB), Pair("libcublasLt.so.13", 32 * kMiB),
                                 Pair("libnccl.so.2", 10 * kMiB)));
}

TEST_F(DriverTest, ManagedAndPageLockedMemory) {
  const Result result = run("host");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-host", Level{2 * kMiB, 3 * kMiB + (64 << 10)}),
                                               Pair("cuda-managed:0", Level{7 * kMiB, 12 * kMiB})));
}

TEST_F(DriverTest, PoolsAreWhatTheyReserve) {
  const Result result = run("pools");
  expect_recorded(result);
  // In steps of 32: six of 12 take 96, three of them need 64, two 32. The other pool grows to 64, 128, is cut to 100,
  // 10, nothing. The first then grows by 96: of 100 + 24. Last a block that is no pool's, freed as if it were.
  std::vector<std::int64_t> steps;
  for (const Change& change : result.said) steps.push_back(change.bytes / kMiB);
  EXPECT_THAT(steps, ElementsAre(32, 32, 32, -32, -32, 64, 64, -28, -90, -10, 96, 1, -1));
}

TEST_F(DriverTest, PoolsOfAnotherDeviceAndOfTheHost) {
  const Result result = run("pools_elsewhere", {.script = {{"devices", 2}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said),
              ElementsAre(Pair("cuda-driver:0", Level{96 * kMiB, 96 * kMiB}),
                          Pair("cuda-driver:1", Level{32 * kMiB, 32 * kMiB}), Pair("cuda-host", Level{0, 64 * kMiB})));
}

TEST_F(DriverTest, PoolsThatAreDestroyedMakeRoomForOthers) {
  const Result result = run("many_pools");
  EXPECT_EQ(result.said.size(), 600U);
  expect_recorded(result);
}

TEST_F(DriverTest, PhysicalMemoryIsUsedUntilItIsReleasedAndUnmapped) {
  const Result result = run("vmm");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said),
              ElementsAre(Pair("cuda-driver:0", Level{2 * kMiB, 8 * kMiB}), Pair("cuda-host", Level{0, 6 * kMiB})));
}

TEST_F(DriverTest, GraphsReserveWhenTheyAreLaunched) {
  const Result result = run("graph");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{64 * kMiB, 96 * kMiB})));
}

TEST_F(DriverTest, TwoDevices) {
  const Result result = run("devices", {.script = {{"devices", 2}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{9 * kMiB, 9 * kMiB}),
                                               Pair("cuda-driver:1", Level{34 * kMiB, 34 * kMiB}),
                                               Pair("cuda-managed:1", Level{5 * kMiB, 5 * kMiB})));
}

TEST_F(DriverTest, ResetGivesEverythingBack) {
  const Result result = run("reset");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{2 * kMiB, 33 * kMiB})));
}

TEST_F(DriverTest, ThreadsFreeEachOthersBlocks) {
  const Result result = run("threads");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const DriverRecording& recording = result.recordings[0];
  std::map<std::int64_t, std::vector<Change>> said;
  std::map<std::int64_t, std::vector<Change>> recorded;
  for (const Change& change : result.said) said[change.tid].push_back(change);
  for (const Change& change : recording.changes) recorded[change.tid].push_back(change);
  EXPECT_EQ(said.size(), 4U);
  ASSERT_EQ(recorded.size(), 4U);
  for (const auto& [tid, changes] : said) expect_changes(recorded[tid], changes);
  EXPECT_EQ(levels(recording.changes)["cuda-driver:0"].now, levels(result.said)["cuda-driver:0"].now);
  EXPECT_THAT(recording.missing, IsEmpty());
  EXPECT_EQ(recording.unsized_frees, 0U);
  EXPECT_TRUE(recording.in_time_order);
}

TEST_F(DriverTest, ThreadsShareAPool) {
  const Result result = run("pool_threads");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const DriverRecording& recording = result.recordings[0];
  // Which thread sees a pool grow is a matter of chance; what there is in the end is not: four pages and 64 MiB.
  EXPECT_EQ(levels(result.said)["cuda-driver:0"].now, 72 * kMiB);
  EXPECT_EQ(levels(recording.changes)["cuda-driver:0"].now, 72 * kMiB);
  EXPECT_THAT(recording.missing, IsEmpty());
  EXPECT_EQ(recording.unsized_frees, 0U);
  EXPECT_TRUE(recording.in_time_order);
}

TEST_F(DriverTest, PoolsAreNotAskedForOnceTheyAreDestroyed) {
  const Result result = run("pools_come_and_go");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_EQ(levels(result.recordings[0].changes)["cuda-driver:0"].now, 3 * kMiB);
  EXPECT_THAT(result.recordings[0].missing, IsEmpty());
}

TEST_F(DriverTest, AKilledProgramLosesNothing) {
  const Result result = run("killed");
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_GT(result.said.size(), 250U);
  expect_changes(result.recordings[0].changes, result.said);
  EXPECT_THAT(result.recordings[0].missing, IsEmpty());
}

TEST_F(DriverTest, AForkBeforeTheDriverStartsMakesTwoRecordings) {
  const Result result = run("forks");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 2U);
  for (const DriverRecording& recording : result.recordings) {
    EXPECT_GT(recording.changes.size(), 20U);
    expect_changes(recording.changes, of_process(result.said, recording.pid));
    EXPECT_THAT(recording.missing, IsEmpty());
  }
}

TEST_F(DriverTest, FreesOfWhatWasNotSeenAreCounted) {
  const Result result = run("never_seen", {.script = {{"untold", {"cuMemAllocPitch_v2"}}}});
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  std::vector<std::int64_t> bytes;
  for (const Change& change : result.recordings[0].changes) bytes.push_back(change.bytes);
  EXPECT_THAT(bytes, ElementsAre(kMiB, -kMiB));
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_frees", 2)));
}

TEST_F(DriverTest, WhatHappensInAPauseIsNotSeen) {
  const Result result = run("paused");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const DriverRecording& recording = result.recordings[0];
  // Those whose addresses are handed out again are gone by then. The pool is found empty when it is looked at next.
  EXPECT_EQ(levels(recording.changes), levels(result.said));
  EXPECT_THAT(recording.missing, IsEmpty());
}

TEST_F(DriverTest, CallsThatFailTakeNothing) {
  const json returns = {{"cuMemAlloc_v2", {0, 2}},
                        {"cuMemCreate", {2}},
                        {"cuMemAllocAsync", {2}},
                        {"cuMemHostAlloc", {2}},
                        {"cuMemAllocManaged", {2}}};
  const Result result = run("failing", {.script = {{"returns", returns}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{4 * kMiB, 4 * kMiB})));
}

TEST_F(DriverTest, ADeviceThatIsFull) {
  const Result result = run("plain", {.script = {{"memory", 40 * kMiB}}});
  expect_recorded(result);
  EXPECT_LE(levels(result.said)["cuda-driver:0"].peak, 40 * kMiB);
}

/// Which lines the driver wrote of one function.
std::ptrdiff_t calls(const Result& result, const std::string& function) {
  return std::count_if(result.log.begin(), result.log.end(),
                       [&](const json& line) { return line.value("function", "") == function; });
}

TEST_F(DriverTest, AToolThatWasThereBeforeKeepsCupti) {
  const Result result = run("tool_before");
  EXPECT_EQ(result.code, 0) << result.messages;
  // Its subscription succeeds (0), and it hears of each call that took something.
  EXPECT_EQ(result.output, "0 " + std::to_string(calls(result, "cuMemAlloc_v2")) + "\n");
  EXPECT_THAT(result.messages, HasSubstr("another tool has CUPTI"));
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_THAT(result.recordings[0].changes, IsEmpty());
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_off", 1)));
  EXPECT_THAT(result.recordings[0].reasons, Contains(HasSubstr("another tool has CUPTI")));
}

TEST_F(DriverTest, AToolThatComesLaterGetsCupti) {
  const Result result = run("tool_later");
  EXPECT_EQ(result.code, 0) << result.messages;
  EXPECT_EQ(result.output, "0 " + std::to_string(calls(result, "cuMemAlloc_v2") - 1) + "\n");
  EXPECT_THAT(result.messages, HasSubstr("another tool takes CUPTI now"));
  ASSERT_EQ(result.recordings.size(), 1U);
  expect_changes(result.recordings[0].changes, {result.said.at(0)});
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_off", 1)));
}

TEST_F(DriverTest, CuptiThatRefuses) {
  const Result held = run("plain", {.script = {{"subscribe", 39}}});
  EXPECT_EQ(held.code, 0);
  EXPECT_THAT(held.messages, HasSubstr("another tool has CUPTI"));
  const Result refused = run("plain", {.script = {{"subscribe", 35}}, .run = "--no-samples --driver on -f"});
  EXPECT_EQ(refused.code, 0);
  EXPECT_THAT(refused.messages, HasSubstr("CUptiResult 35"));
  EXPECT_EQ(delivered(held) + delivered(refused), 0U);
}

TEST_F(DriverTest, NoCupti) {
  const Result result = run("plain", {.has_cupti = false});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U) << "the program runs as without Tidemark";
  EXPECT_THAT(result.messages, HasSubstr("libcupti.so was not found"));
}

TEST_F(DriverTest, DriverThatIsTooOld) {
  const Result result = run("plain", {.driver = FAKES_DRIVER_OLD});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U);
  EXPECT_THAT(result.messages, HasSubstr("too old"));
  EXPECT_EQ(delivered(result), 0U);
}

TEST_F(DriverTest, CuptiThatDoesNotKnowNewFunctions) {
  expect_recorded(run("plain", {.script = {{"largest_id", 640}}}));
}

TEST_F(DriverTest, OffUnlessAskedFor) {
  const Result result = run("plain", {.run = "--no-samples --stacks native"});
  EXPECT_EQ(result.code, 0);
  EXPECT_GT(result.said.size(), 250U);
  EXPECT_THAT(result.recordings, IsEmpty());
  EXPECT_EQ(delivered(result), 0U);
}

/// At a time when nothing changes: processes are listed once a second, while others allocate.
json ledger(const std::string& path) {
  const std::string command = TIDEMARK_PROGRAM " ledger --at 1.7s --format json " + path + " >" + path + ".ledger";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return json::parse(text_of(path + ".ledger"))["devices"][0]["ledger"];
}

/// The whole path without a GPU: what NVML reports is what the driver gave out, a context, and another process.
class DriverLedgerTest : public DriverTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DriverLedgerTest, ExplainsAllOfADevice) {
  constexpr std::int64_t kContext = 500 * kMiB;
  constexpr std::int64_t kOther = 2048 * kMiB;
  const json device = {{"uuid", "GPU-1111"},
                       {"memory", {{"total", (80 << 10) * kMiB}, {"reserved", 500 * kMiB}, {"used", kOther}}},
                       {"processes", {{{"pid", 1}, {"bytes", kOther}}}},
                       {"driver_log", folder_.at("log")},
                       {"context", kContext}};
  const std::string nvml = folder_.write("nvml.json", json{{"devices", json::array({device})}}.dump());
  const Result result =
      run("training", {.run = "--driver on --stacks none --sample-interval 10ms",
                       .environment = std::string("FAKES_SEGMENTS=") + GetParam() + " FAKES_NVML=" + nvml +
                                      " FAKES_SAID=" + folder_.at("said") + " FAKES_HEARD=" + folder_.at("heard")});
  expect_recorded(result);
  EXPECT_EQ(result.output, std::to_string(28 * kMiB) + "\n") << "27 MiB of blocks, in segments of 2";
  const json found = ledger(folder_.at("run.tide"));
  std::map<std::string, std::int64_t> bytes;
  for (const json& line : found["lines"]) {
    bytes[line["part"].get<std::string>() + " " + line.value("name", "")] +=
        line["bytes"].is_null() ? -1 : line["bytes"].get<std::int64_t>();
  }
  EXPECT_THAT(bytes,
              ElementsAre(Pair("context ", kContext), Pair("library NCCL", 5 * kMiB), Pair("library cuBLAS", 32 * kMiB),
                          Pair("library fakes_driver_program", 3 * kMiB),
                          Pair(AllOf(StartsWith("process "), Not("process ")), kOther), Pair("pytorch ", 28 * kMiB)));
  EXPECT_EQ(found["used_bytes"], kContext + kOther + 68 * kMiB);
  EXPECT_EQ(found["unexplained_bytes"], 0);
}

INSTANTIATE_TEST_SUITE_P(Segments, DriverLedgerTest, ::testing::Values("blocks", "expandable"),
                         [](const auto& segments) { return std::string(segments.param); });

TEST_F(DriverTest, AnotherToolsLibraryStays) {
  const Result result = run("plain", {.environment = "CUDA_INJECTION64_PATH=/opt/other.so"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.messages, HasSubstr("/opt/other.so"));
  EXPECT_EQ(delivered(result), 0U);
}

}  // namespace
}  // namespace tidemark::testing
