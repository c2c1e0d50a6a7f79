// `tidemark run --driver on`: the driver's memory in a recording equals the driver's own account.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver_run.h"

namespace tidemark::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<Change> of_process(const std::vector<Change>& changes, std::int64_t pid) {
  std::vector<Change> out;
  std::copy_if(changes.begin(), changes.end(), std::back_inserter(out),
               [pid](const Change& change) { return change.pid == pid; });
  return out;
}

TEST_F(DriverTest, BlocksComeAndGo) {
  const DriverRun result = run("plain");
  EXPECT_GT(result.said.size(), 250U);
  expect_recorded(result);
  EXPECT_GE(delivered(result), 2 * result.said.size()) << "each call at its entry and its exit";
}

TEST_F(DriverTest, LibrariesOwnTheirMemory) {
  const DriverRun result = run("libraries");
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
  const DriverRun result = run("host");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-host", Level{2 * kMiB, 3 * kMiB + (64 << 10)}),
                                               Pair("cuda-managed:0", Level{7 * kMiB, 12 * kMiB})));
}

TEST_F(DriverTest, PoolsHaveTheirReservedSize) {
  const DriverRun result = run("pools");
  expect_recorded(result);
  // In steps of 32: six of 12 take 96, three of them need 64, two 32. The other pool grows to 64, 128, is trimmed to
  // 100, 10, nothing. The first then grows by 96: for 100 + 24. Last a block that is not in a pool, freed like a
  // pool's.
  std::vector<std::int64_t> steps;
  for (const Change& change : result.said) steps.push_back(change.bytes / kMiB);
  EXPECT_THAT(steps, ElementsAre(32, 32, 32, -32, -32, 64, 64, -28, -90, -10, 96, 1, -1));
}

TEST_F(DriverTest, PoolsOfAnotherDeviceAndOfTheHost) {
  const DriverRun result = run("pools_elsewhere", {.script = {{"devices", 2}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said),
              ElementsAre(Pair("cuda-driver:0", Level{96 * kMiB, 96 * kMiB}),
                          Pair("cuda-driver:1", Level{32 * kMiB, 32 * kMiB}), Pair("cuda-host", Level{0, 64 * kMiB})));
}

TEST_F(DriverTest, PoolsThatAreDestroyedMakeRoomForOthers) {
  const DriverRun result = run("many_pools");
  EXPECT_EQ(result.said.size(), 600U);
  expect_recorded(result);
}

TEST_F(DriverTest, PhysicalMemoryIsUsedUntilItIsReleasedAndUnmapped) {
  const DriverRun result = run("vmm");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said),
              ElementsAre(Pair("cuda-driver:0", Level{2 * kMiB, 8 * kMiB}), Pair("cuda-host", Level{0, 6 * kMiB})));
}

TEST_F(DriverTest, GraphsReserveWhenTheyAreLaunched) {
  const DriverRun result = run("graph");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{64 * kMiB, 96 * kMiB})));
}

TEST_F(DriverTest, GraphsReserveWhenTheyAreUploaded) {
  const DriverRun result = run("graph_nodes");
  expect_recorded(result);
  std::vector<std::int64_t> steps;
  for (const Change& change : result.said) steps.push_back(change.bytes / kMiB);
  EXPECT_THAT(steps, ElementsAre(64, 1));
}

TEST_F(DriverTest, TwoDevices) {
  const DriverRun result = run("devices", {.script = {{"devices", 2}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{9 * kMiB, 9 * kMiB}),
                                               Pair("cuda-driver:1", Level{34 * kMiB, 34 * kMiB}),
                                               Pair("cuda-managed:1", Level{5 * kMiB, 5 * kMiB})));
}

TEST_F(DriverTest, ResetGivesEverythingBack) {
  const DriverRun result = run("reset");
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{2 * kMiB, 33 * kMiB})));
}

TEST_F(DriverTest, ThreadsFreeEachOthersBlocks) {
  const DriverRun result = run("threads");
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
  const DriverRun result = run("pool_threads");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const DriverRecording& recording = result.recordings[0];
  // Which thread sees a pool grow is random; the total at the end is not: four pages and 64 MiB.
  EXPECT_EQ(levels(result.said)["cuda-driver:0"].now, 72 * kMiB);
  EXPECT_EQ(levels(recording.changes)["cuda-driver:0"].now, 72 * kMiB);
  EXPECT_THAT(recording.missing, IsEmpty());
  EXPECT_EQ(recording.unsized_frees, 0U);
  EXPECT_TRUE(recording.in_time_order);
}

TEST_F(DriverTest, DestroyedPoolsAreNotQueried) {
  const DriverRun result = run("pools_come_and_go");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_EQ(levels(result.recordings[0].changes)["cuda-driver:0"].now, 3 * kMiB);
  EXPECT_THAT(result.recordings[0].missing, IsEmpty());
}

TEST_F(DriverTest, AKilledProgramLosesNothing) {
  const DriverRun result = run("killed");
  ASSERT_EQ(result.recordings.size(), 1U);
  EXPECT_GT(result.said.size(), 250U);
  expect_changes(result.recordings[0].changes, result.said);
  EXPECT_THAT(result.recordings[0].missing, IsEmpty());
}

TEST_F(DriverTest, AForkBeforeTheDriverStartsMakesTwoRecordings) {
  const DriverRun result = run("forks");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 2U);
  for (const DriverRecording& recording : result.recordings) {
    EXPECT_GT(recording.changes.size(), 20U);
    expect_changes(recording.changes, of_process(result.said, recording.pid));
    EXPECT_THAT(recording.missing, IsEmpty());
  }
}

TEST_F(DriverTest, FreesOfUnrecordedMemoryAreCounted) {
  const DriverRun result = run("never_seen", {.script = {{"untold", {"cuMemAllocPitch_v2"}}}});
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  std::vector<std::int64_t> bytes;
  for (const Change& change : result.recordings[0].changes) bytes.push_back(change.bytes);
  EXPECT_THAT(bytes, ElementsAre(kMiB, -kMiB));
  EXPECT_THAT(result.recordings[0].missing, ElementsAre(Pair("driver_frees", 1)));
}

TEST_F(DriverTest, WhatHappensInAPauseIsNotSeen) {
  const DriverRun result = run("paused");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  const DriverRecording& recording = result.recordings[0];
  // Pools whose addresses are reused are gone by then. The pool is found empty at the next check.
  EXPECT_EQ(levels(recording.changes), levels(result.said));
  EXPECT_THAT(recording.missing, IsEmpty());
}

TEST_F(DriverTest, PoolsDestroyedInAPauseAreNotQueried) {
  const DriverRun result = run("pool_destroyed_in_pause");
  EXPECT_EQ(result.code, 0) << result.messages;
  ASSERT_EQ(result.recordings.size(), 1U);
  std::vector<std::int64_t> steps;
  for (const Change& change : result.recordings[0].changes) steps.push_back(change.bytes / kMiB);
  EXPECT_THAT(steps, ElementsAre(32, 32)) << "the end of the first was not recorded";
}

TEST_F(DriverTest, CallsThatFailTakeNothing) {
  const json returns = {{"cuMemAlloc_v2", {0, 2}},
                        {"cuMemCreate", {2}},
                        {"cuMemAllocAsync", {2}},
                        {"cuMemHostAlloc", {2}},
                        {"cuMemAllocManaged", {2}}};
  const DriverRun result = run("failing", {.script = {{"returns", returns}}});
  expect_recorded(result);
  EXPECT_THAT(levels(result.said), ElementsAre(Pair("cuda-driver:0", Level{4 * kMiB, 4 * kMiB})));
}

TEST_F(DriverTest, FailedFreesReleaseNothing) {
  json returns;
  for (const char* function : {"cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuMemRelease", "cuMemUnmap",
                               "cuArrayDestroy", "cuMemPoolDestroy", "cuDevicePrimaryCtxReset_v2"}) {
    returns[function] = {1};
  }
  returns["cuMemFreeAsync"] = {0, 1};  // the first is the pool's
  const DriverRun result = run("failing_frees", {.script = {{"returns", returns}}});
  expect_recorded(result);
  // All memory is alive until the first round ends; then its allocations are freed with the context.
  EXPECT_THAT(levels(result.said),
              ElementsAre(Pair("cuda-driver:0", Level{9 * kMiB, (1 + 2 + 4 + 4 + 64 + 6 + 8) * kMiB}),
                          Pair("cuda-host", Level{0, 3 * kMiB + (64 << 10)})));
}

TEST_F(DriverTest, ADeviceThatIsFull) {
  const DriverRun result = run("plain", {.script = {{"memory", 40 * kMiB}}});
  expect_recorded(result);
  EXPECT_LE(levels(result.said)["cuda-driver:0"].peak, 40 * kMiB);
}

}  // namespace
}  // namespace tidemark::testing
