#include "analyze/plan/plan.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace tidemark {
namespace {

// A process that uses cuda:0, which is GPU `gpu` of the plan.
PlannedRecording recording(std::int64_t pid, std::uint32_t gpu, std::uint64_t reserved) {
  PlannedRecording recording;
  recording.summary.recording.process.pid = pid;
  SummaryDevice& device = recording.summary.devices.emplace_back();
  device.totals.device = Device{DeviceType::cuda, 0};
  device.totals.peak_allocated_at_ns = 1;
  device.totals.peak_reserved_bytes = reserved;
  SampledDevice& sampled = recording.devices.emplace_back();
  sampled.index = gpu;
  sampled.cuda_index = 0;
  return recording;
}

PlanFacts facts() {
  PlanFacts facts;
  facts.memory_bytes = 16 * kGiB;
  facts.context_bytes = kGiB;
  return facts;
}

TEST(PlanTest, ProcessesOfOneGpuAreTakenTogether) {
  PlanFacts known = facts();
  const std::vector<PlannedRecording> recordings = {recording(1, 0, 6 * kGiB), recording(2, 1, 9 * kGiB),
                                                    recording(3, 1, 5 * kGiB)};
  known.device_peaks = {7 * kGiB, 15 * kGiB};
  const Plan plan = make_plan(known, recordings);
  EXPECT_TRUE(plan.fits);
  ASSERT_EQ(plan.devices.size(), 3U);
  EXPECT_EQ(plan.devices[0].recording.process.pid, 2);  // the least headroom first
  EXPECT_EQ(plan.devices[0].gpu, 1U);
  EXPECT_EQ(plan.devices[0].process_count, 2U);
  EXPECT_EQ(plan.devices[0].device_used_bytes, 15 * kGiB);
  EXPECT_EQ(plan.devices[0].headroom_bytes, kGiB);
  EXPECT_EQ(plan.devices[2].device_used_bytes, 7 * kGiB);
  // If the simultaneous maximum is unknown, the peaks are added.
  EXPECT_EQ(make_plan(facts(), recordings).devices[0].device_used_bytes, 16 * kGiB);
  EXPECT_FALSE(make_plan(facts(), {recording(2, 1, 9 * kGiB), recording(3, 1, 5 * kGiB + 1)}).fits);
  EXPECT_TRUE(make_plan(facts(), {recording(2, 0, 9 * kGiB), recording(3, 1, 5 * kGiB + 1)}).fits);
}

TEST(PlanTest, MemoryOfLibrariesCountsAsUsed) {
  PlanFacts known = facts();
  known.device_peaks = {0, 9 * kGiB};
  known.processes.emplace_back().pid = 1;
  known.processes[0].libraries = {{"libone.so", 1, 2 * kGiB}, {"libother.so", 0, kGiB}};
  const Plan plan = make_plan(known, {recording(1, 1, 6 * kGiB)});
  EXPECT_EQ(plan.devices[0].device_used_bytes, 9 * kGiB);
  ASSERT_EQ(plan.devices[0].libraries.size(), 1U);
  EXPECT_EQ(plan.devices[0].libraries[0].name, "libone.so");
}

TEST(PlanTest, NcclTakesMoreForTheFirstCommunicator) {
  PlanFacts known = facts();
  known.nccl = NcclMemory{4 * kGiB, 2 * kGiB};
  known.processes = {{1, 3, 2}, {2, 2, 0}, {3, 0, 0}};
  const Plan plan = make_plan(known, {recording(1, 0, 9 * kGiB)});
  EXPECT_EQ(plan.devices[0].device_used_bytes, 16 * kGiB);
  EXPECT_EQ(plan.devices[0].nccl_bytes, 6 * kGiB);
  EXPECT_EQ(plan.steps, 2U);  // steps of both ranks; the third process does not train
  EXPECT_FALSE(make_plan(known, {recording(1, 0, 9 * kGiB + 1)}).fits);
}

TEST(PlanTest, LibrariesTakeMemoryBesideTheContext) {
  PlanFacts known = facts();
  known.processes = {{.pid = 1, .driver_bytes = {kGiB, 3 * kGiB}}};
  const Plan plan = make_plan(known, {recording(1, 1, 12 * kGiB)});
  EXPECT_EQ(plan.devices[0].driver_bytes, 3 * kGiB);
  EXPECT_EQ(plan.devices[0].device_used_bytes, 16 * kGiB);
  EXPECT_TRUE(plan.fits);
  EXPECT_FALSE(make_plan(known, {recording(1, 1, 12 * kGiB + 1)}).fits);
}

}  // namespace
}  // namespace tidemark
