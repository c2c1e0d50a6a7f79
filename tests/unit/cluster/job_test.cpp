// A job's risk and its outliers, against values computed by hand.
#include "cluster/job.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/cluster/scripted_node.h"

namespace tidemark {
namespace {

/// 1 GiB of outside memory, 2 GiB of parameters; `activation` differs.
void add_recorded_rank(ScriptedNode& node, std::uint32_t rank, std::uint64_t activation, std::uint64_t outside = kGiB,
                       const std::string& role = "") {
  const std::size_t place = node.state().devices.size();
  const std::uint64_t allocated = 2 * kGiB + activation;
  node.add_rank(rank, allocated + kGiB / 2 + outside, role);
  node.record(place, allocated + kGiB / 2, {{Category::parameter, 2 * kGiB}, {Category::activation, activation}});
}

class JobTest : public ::testing::Test {
 protected:
  void send(ScriptedNode& node, std::uint64_t elapsed_ns = kSecondNs) {
    const auto taken = job_.take(node.token(), node.message(elapsed_ns), now_ + elapsed_ns);
    ASSERT_TRUE(taken.accepted) << taken.problem;
  }

  JobState job_;
  std::uint64_t now_ = 1000 * kSecondNs;
};

TEST_F(JobTest, RanksAreInOrderAcrossNodes) {
  ScriptedNode b("b", 1);
  ScriptedNode a("a", 2);
  b.add_rank(0, 10 * kGiB);
  b.add_rank(2, 12 * kGiB);
  a.add_rank(1, 11 * kGiB);
  a.identity(0).world_size = 3;
  b.identity(0).world_size = 3;
  send(a);
  send(b);
  const JobReport report = compare_job(job_, now_ + 2 * kSecondNs);
  ASSERT_EQ(report.ranks.size(), 3U);
  EXPECT_EQ(report.world_size, 3U);
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[0].name, "a");
  EXPECT_EQ(report.nodes[1].ranks, 2U);
  const std::vector<std::uint64_t> used = {10 * kGiB, 11 * kGiB, 12 * kGiB};
  for (std::size_t n = 0; n < 3; ++n) {
    const JobRank& rank = report.ranks[n];
    EXPECT_EQ(rank.rank, n);
    EXPECT_EQ(rank.used_bytes, used[n]);
    EXPECT_EQ(rank.limit_bytes, 80 * kGiB);  // alone on its GPU: all of it
    EXPECT_EQ(rank.allocated_bytes, std::nullopt);
  }
  EXPECT_EQ(report.ranks[1].node, 0U);
  ASSERT_EQ(report.roles.size(), 1U);
  EXPECT_EQ(report.roles[0].median_bytes, 11 * kGiB);
  EXPECT_EQ(report.roles[0].min_rank, 0U);
  EXPECT_EQ(report.roles[0].max_rank, 2U);
}

TEST_F(JobTest, AnOutlierIsExplainedByCategory) {
  ScriptedNode a("a", 1);
  ScriptedNode b("b", 2);
  add_recorded_rank(a, 0, 4 * kGiB);
  add_recorded_rank(a, 1, 4 * kGiB);
  add_recorded_rank(b, 2, 4 * kGiB);
  add_recorded_rank(b, 3, 6 * kGiB, 2 * kGiB);
  send(a);
  send(b);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  ASSERT_EQ(report.outliers.size(), 1U);
  const RankOutlier& outlier = report.outliers[0];
  EXPECT_EQ(report.ranks[outlier.rank].rank, 3U);
  EXPECT_EQ(outlier.measure, RankMeasure::used);
  // 2 + 4 + 0.5 + 1 of the peers, 2 + 6 + 0.5 + 2 of rank 3.
  EXPECT_EQ(outlier.peer_median_bytes, 15 * kGiB / 2);
  EXPECT_EQ(outlier.bytes, 21 * kGiB / 2);
  EXPECT_EQ(outlier.peers, 3U);
  ASSERT_EQ(outlier.parts.size(), 2U);
  EXPECT_EQ(outlier.parts[0].part, RankPart::category);
  EXPECT_EQ(outlier.parts[0].category, Category::activation);
  EXPECT_EQ(outlier.parts[0].bytes, static_cast<std::int64_t>(2 * kGiB));
  EXPECT_EQ(outlier.parts[1].part, RankPart::outside);
  EXPECT_EQ(outlier.parts[1].bytes, static_cast<std::int64_t>(kGiB));
}

TEST_F(JobTest, PeersAreOfTheSameRole) {
  ScriptedNode a("a", 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) add_recorded_rank(a, rank, 4 * kGiB, kGiB, "pipeline 0");
  for (std::uint32_t rank = 3; rank < 6; ++rank) add_recorded_rank(a, rank, 20 * kGiB, kGiB, "pipeline 1");
  send(a);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  EXPECT_TRUE(report.outliers.empty());
  ASSERT_EQ(report.roles.size(), 2U);
  EXPECT_EQ(report.roles[0].role, "pipeline 0");
  EXPECT_EQ(report.roles[1].median_bytes - report.roles[0].median_bytes, 16 * kGiB);
}

TEST_F(JobTest, TwoRanksHaveNoOutlier) {
  ScriptedNode a("a", 1);
  a.add_rank(0, 10 * kGiB);
  a.add_rank(1, 40 * kGiB);
  send(a);
  EXPECT_TRUE(compare_job(job_, now_ + kSecondNs).outliers.empty());
}

TEST_F(JobTest, WithoutRecordingsTheReasonIsUnknown) {
  ScriptedNode a("a", 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) a.add_rank(rank, rank == 2 ? 30 * kGiB : 20 * kGiB);
  send(a);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  ASSERT_EQ(report.outliers.size(), 1U);
  EXPECT_EQ(report.ranks[report.outliers[0].rank].rank, 2U);
  EXPECT_TRUE(report.outliers[0].parts.empty());
}

TEST_F(JobTest, TheEarliestLimitOfTheHighestRiskDecides) {
  ScriptedNode a("a", 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) a.add_rank(rank, 20 * kGiB);
  ScriptedNode b("b", 2);
  b.add_rank(3, 20 * kGiB);
  a.risk(0).level = RiskLevel::medium;
  a.risk(0).seconds_to_limit = Interval{10, 5, 20};  // soon, but of a lower level
  a.risk(1).level = RiskLevel::high;
  a.risk(1).seconds_to_limit = Interval{500, 400, 600};
  b.risk(0).level = RiskLevel::high;
  b.risk(0).seconds_to_limit = Interval{300, 200, 400};
  b.risk(0).steps_to_limit = Interval{150, 100, 200};
  send(a);
  send(b);
  JobReport report = compare_job(job_, now_ + kSecondNs);
  ASSERT_TRUE(report.risk);
  EXPECT_EQ(report.risk->risk.level, RiskLevel::high);
  ASSERT_TRUE(report.risk->rank);
  EXPECT_EQ(report.ranks[*report.risk->rank].rank, 3U);
  EXPECT_DOUBLE_EQ(report.risk->risk.seconds_to_limit->expected, 300);
  EXPECT_DOUBLE_EQ(report.risk->risk.steps_to_limit->expected, 150);
  // Rank 3's node is not heard any more: what is known of it is old.
  send(a, 9 * kSecondNs);
  report = compare_job(job_, now_ + 9 * kSecondNs);
  EXPECT_EQ(report.nodes[1].condition, NodeCondition::old);
  EXPECT_NEAR(report.nodes[1].age_seconds, 8, 0.01);
  EXPECT_EQ(report.ranks[*report.risk->rank].rank, 1U);
  EXPECT_FALSE(report.ranks[3].current);
  EXPECT_EQ(report.roles[0].count, 3U);
  // And nothing is known when no node is heard.
  report = compare_job(job_, now_ + 60 * kSecondNs);
  EXPECT_FALSE(report.risk);
  EXPECT_TRUE(report.roles.empty());
}

TEST_F(JobTest, TheHostsMemoryMayDecide) {
  ScriptedNode a("a", 1);
  a.add_rank(0, 20 * kGiB);
  a.state().host.risk.level = RiskLevel::high;
  a.state().host.assessed_at_ns = kSecondNs;
  send(a);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  ASSERT_TRUE(report.risk);
  EXPECT_FALSE(report.risk->rank);
  EXPECT_FALSE(report.risk->device);
}

TEST_F(JobTest, SlowRanksAreFoundByTheirSteps) {
  ScriptedNode a("a", 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) a.add_rank(rank, 20 * kGiB);
  for (std::uint64_t second = 1; second <= 20; ++second) {
    for (std::size_t place = 0; place < 4; ++place) a.set_steps(place, place == 1 ? second : 2 * second);
    send(a, second * kSecondNs);
  }
  const JobReport report = compare_job(job_, now_ + 20 * kSecondNs);
  EXPECT_DOUBLE_EQ(report.step_seconds.value_or(0), 0.5);
  ASSERT_EQ(report.stragglers.size(), 1U);
  EXPECT_EQ(report.ranks[report.stragglers[0].rank].rank, 1U);
  EXPECT_DOUBLE_EQ(report.stragglers[0].step_seconds, 1);
  EXPECT_DOUBLE_EQ(report.stragglers[0].median_seconds, 0.5);
}

TEST_F(JobTest, AContextOnAnotherDeviceIsKeptApart) {
  ScriptedNode a("a", 1);
  a.add_rank(0, 20 * kGiB);
  a.add_rank(1, 20 * kGiB);
  ProcessOnDevice& context = a.state().processes[1].devices.emplace_back();
  context.device = 0;
  context.held = true;
  context.bytes = kGiB / 2;
  send(a);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  EXPECT_EQ(report.ranks[1].device, 1U);
  EXPECT_EQ(report.ranks[1].used_bytes, 20 * kGiB);
  EXPECT_EQ(report.ranks[1].other_devices_bytes, kGiB / 2);
  EXPECT_EQ(report.ranks[0].other_devices_bytes, std::nullopt);
}

TEST_F(JobTest, UnknownStaysUnknown) {
  ScriptedNode a("a", 1);
  a.add_rank(0, 20 * kGiB);
  a.state().processes[0].devices[0].bytes.reset();  // as drivers in containers do
  a.state().devices[0].latest.used_bytes.reset();
  a.state().devices[0].assessed_at_ns.reset();
  send(a);
  const JobReport report = compare_job(job_, now_ + kSecondNs);
  ASSERT_EQ(report.ranks.size(), 1U);
  EXPECT_EQ(report.ranks[0].used_bytes, std::nullopt);
  EXPECT_EQ(report.ranks[0].limit_bytes, std::nullopt);
  EXPECT_FALSE(report.ranks[0].risk);
  EXPECT_EQ(report.roles[0].known, 0U);
}

}  // namespace
}  // namespace tidemark
