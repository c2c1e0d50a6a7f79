// The screen of a job, line by line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/units.h"
#include "query/words/job.h"
#include "report/common/text.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobDevice gpu(const std::string& key, std::uint64_t used_bytes) {
  JobDevice device;
  device.key = key;
  device.name = "NVIDIA H100 80GB HBM3";
  device.total_bytes = 80 * kGiB;
  device.limit_bytes = 79 * kGiB;
  device.used_bytes = used_bytes;
  device.risk.emplace().used_percent = static_cast<double>(used_bytes) * 100 / static_cast<double>(79 * kGiB);
  return device;
}

/// Two ranks a node, GPUs 0 and 1.
JobNode node(const std::string& name, double age_seconds, std::uint64_t first_bytes, std::uint64_t second_bytes) {
  JobNode made;
  made.name = name;
  made.age_seconds = age_seconds;
  made.condition = age_seconds > 5 ? NodeCondition::old : NodeCondition::current;
  made.ranks = 2;
  made.devices = {gpu("0", first_bytes), gpu("1", second_bytes)};
  made.host.is_host = true;
  made.host.used_bytes = 100 * kGiB;
  made.host.risk.emplace();
  return made;
}

JobReport scripted_job() {
  JobReport job;
  job.name = "llama";
  job.duration_seconds = 600;
  job.nodes = {node("a", 0.4, 20 * kGiB, 20 * kGiB), node("b", 0.6, 20 * kGiB, 22 * kGiB),
               node("c", 12, 20 * kGiB, 20 * kGiB)};
  for (std::uint32_t n = 0; n < 6; ++n) {
    JobRank rank;
    rank.node = n / 2;
    rank.pid = 4000 + n;
    rank.rank = n;
    rank.device = n % 2;
    rank.current = n < 4;
    rank.used_bytes = n == 3 ? 22 * kGiB : 20 * kGiB;
    rank.reserved_bytes = rank.allocated_bytes = n == 3 ? 21 * kGiB : 39 * kGiB / 2;
    job.ranks.push_back(rank);
  }
  job.world_size = 6;
  RiskAssessment risk;
  risk.level = RiskLevel::high;
  risk.confidence = 0.87;
  risk.pattern = UsagePattern::growth;
  risk.used_percent = 27.8;
  risk.seconds_to_limit = Interval{480, 420, 540};
  risk.steps_to_limit = Interval{960, 840, 1080};
  job.nodes[1].devices[1].risk = risk;
  job.ranks[3].risk = risk;
  job.risk = JobRisk{risk, 1, 3, 1};
  job.roles = {{"", 4, 4, RankMeasure::used, 20 * kGiB, 20 * kGiB, 22 * kGiB, 0, 3}};
  job.outliers = {{3,
                   RankMeasure::used,
                   22 * kGiB,
                   20 * kGiB,
                   3,
                   {{RankPart::category, Category::activation, static_cast<std::int64_t>(3 * kGiB / 2)},
                    {RankPart::outside, Category::unknown, static_cast<std::int64_t>(kGiB / 2)}}}};
  job.step_seconds = 0.5;
  job.stragglers = {{3, 0.75, 0.5}};
  return job;
}

TEST(JobText, IsOneScreen) {
  EXPECT_EQ(
      to_text(scripted_job(), Terminal()),
      R"(Risk high: rank 3 (node b, GPU 1) reaches its limit in 8 min (90% interval: 7 min to 9 min), in 960 training steps (840 to 1,080), confidence 87%.
Job llama: 6 ranks on 3 nodes, watched for 10 min
Note: node c: last heard 12 s ago; its 2 ranks are left out.

Ranks that differ from their peers
  rank 3 (node b, GPU 1): 22.0 GiB used, 2.0 GiB above the median of its 3 peers
    +1.5 GiB activation
    +512.0 MiB outside PyTorch's allocator (CUDA context, NCCL, libraries)

Memory of the ranks by role
  ranks  measure                min    median                max  role
      4     used  20.0 GiB (rank 0)  20.0 GiB  22.0 GiB (rank 3)  (none)

Training steps
  0.5 s a step, median of the ranks
  rank 3 (node b, GPU 1) is slower: 0.75 s, 50% above the median

Nodes
  last heard  ranks  devices  fullest device      used  of limit       host  risk  node
    12 s ago      2        2           GPU 0  20.0 GiB  79.0 GiB  100.0 GiB   low  c
         now      2        2           GPU 1  22.0 GiB  79.0 GiB  100.0 GiB  high  b
         now      2        2           GPU 0  20.0 GiB  79.0 GiB  100.0 GiB   low  a
)");
}

TEST(JobText, ATroubledNodeComesFirstOfMany) {
  JobReport job = scripted_job();
  for (int n = 0; n < 1000; ++n) job.nodes.push_back(node("n" + std::to_string(n), 0.1, kGiB, kGiB));
  const std::string text = to_text(job, Terminal());
  EXPECT_THAT(text, HasSubstr("(995 more nodes)"));
  EXPECT_LT(text.find(" c\n"), text.find(" a\n"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
}

TEST(JobText, NamesCannotControlTheTerminal) {
  JobReport job = scripted_job();
  job.name = "a\x1b[2J";
  job.nodes[2].name = "c\x1b]0;owned\x07";
  job.nodes[0].devices[0].key = "0\r";
  job.roles[0].role = "r\x1b[1m";
  job.problems = {"refused \x1b[31m"};
  EXPECT_THAT(to_text(job, Terminal()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(job, Terminal()), Not(HasSubstr("\r")));
}

TEST(JobText, WithoutNodesItSaysSo) {
  JobReport job;
  job.name = "default";
  EXPECT_THAT(to_text(job, Terminal()), HasSubstr("No node has sent its state yet."));
  job.nodes = {node("a", 60, kGiB, kGiB)};
  EXPECT_THAT(to_text(job, Terminal()), HasSubstr("Risk unknown"));
  EXPECT_THAT(to_text(job, Terminal()), HasSubstr("node a: last heard 60 s ago; its 2 ranks are left out"));
}

TEST(JobText, ChangesAreLines) {
  const JobReport job = scripted_job();
  constexpr std::uint64_t kTime = 1'790'000'000'000'000'000;
  EXPECT_EQ(change_text({JobChange::Kind::joined, "b", {}, kTime}, job), "2026-09-21 14:13:20 UTC node b joined");
  EXPECT_THAT(change_text({JobChange::Kind::risk, "", RiskLevel::low, kTime}, job),
              HasSubstr("(was low): Risk high: rank 3 (node b, GPU 1) reaches its limit in 8 min"));
}

}  // namespace
}  // namespace tidemark
