// A report that came through bytes is the one that was sent.
#include "cluster/report_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cluster/job.h"
#include "cluster/request.h"
#include "query/results/machine_results.h"
#include "unit/cluster/scripted_node.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

/// Four ranks on two nodes: one recorded outlier with a risk, and events.
JobReport example() {
  JobState job;
  const std::uint64_t now = 1000 * kSecondNs;
  for (const std::uint32_t node : {0U, 1U}) {
    ScriptedNode machine(node == 0 ? "a" : "b", node + 1);
    machine.add_rank(2 * node, 20 * kGiB, "pipeline 0");
    machine.add_rank(2 * node + 1, (node == 0 ? 20 : 30) * kGiB, "pipeline 0");
    machine.record(1, 19 * kGiB, {{Category::parameter, 2 * kGiB}, {Category::activation, 16 * kGiB}});
    machine.risk(1).level = node == 0 ? RiskLevel::low : RiskLevel::high;
    machine.risk(1).seconds_to_limit = Interval{120.5, 60, std::nullopt};
    machine.state().problems = {"driver of \"b\" does not answer"};
    EXPECT_TRUE(job.take(machine.token(), machine.message(kSecondNs), now + kSecondNs).accepted);
  }
  JobReport report = compare_job(job, now + 2 * kSecondNs);
  report.name = "4711";
  report.began_wall_ns = 1'790'000'000'000'000'000;
  report.now_wall_ns = 1'790'000'060'000'000'000;
  report.duration_seconds = 60.25;
  report.events = {{JobEventKind::out_of_memory, "b", 1'790'000'030'000'000'000, 3, 4001, "1", "64.0 MiB requested"},
                   {JobEventKind::rank_ended, "a", 1'790'000'031'000'000'000, std::nullopt, std::nullopt, "", "ended"}};
  report.earlier_events = 7;
  report.problems = {"nats-server was started again, 1 times"};
  report.refused = 3;
  return report;
}

TEST(ReportCodec, KeepsTheReport) {
  const JobReport report = example();
  ASSERT_FALSE(report.outliers.empty());
  ASSERT_TRUE(report.risk);
  const auto read = decode_report(encode(report));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(report));
}

TEST(ReportCodec, AnEmptyReportToo) {
  const auto read = decode_report(encode(JobReport()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(JobReport()));
}

TEST(ReportCodec, RefusesDamage) {
  EXPECT_FALSE(decode_report("").ok());
  const std::string bytes = encode(example());
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    const auto read = decode_report(bytes.substr(0, length));
    EXPECT_TRUE(!read || read->ranks.size() <= 4U) << length;
  }
  JobReport report = example();
  report.ranks[0].node = 9;
  EXPECT_THAT(decode_report(encode(report)).error().message, HasSubstr("a rank or device that it does not have"));
  report = example();
  report.nodes[0].condition = static_cast<NodeCondition>(7);
  EXPECT_THAT(decode_report(encode(report)).error().message, HasSubstr("a value is unknown"));
}

TEST(AnswerParts, ComeInAnyOrderAndTwice) {
  std::string answer(2 * AnswerParts::kPartBytes + 5, 'x');
  answer.back() = 'y';
  auto messages = answer_messages(answer);
  ASSERT_EQ(messages.size(), 3U);
  std::reverse(messages.begin(), messages.end());
  AnswerParts parts;
  EXPECT_TRUE(parts.take(messages[0]).ok());
  EXPECT_TRUE(parts.take(messages[0]).ok());
  EXPECT_TRUE(parts.take(messages[1]).ok());
  EXPECT_EQ(parts.whole(), std::nullopt);
  EXPECT_TRUE(parts.take(messages[2]).ok());
  EXPECT_EQ(parts.whole(), answer);
  // A part of another answer.
  EXPECT_FALSE(parts.take(answer_messages("short")[0]).ok());
  EXPECT_FALSE(AnswerParts().take("\x08").ok());
}

TEST(AnswerParts, OfAnEmptyAnswer) {
  AnswerParts parts;
  EXPECT_TRUE(parts.take(answer_messages("")[0]).ok());
  EXPECT_EQ(parts.whole(), "");
}

TEST(Requests, KeepTheirNumber) {
  EXPECT_EQ(decode_request(encode(Request{77})).value(), Request{77});
  EXPECT_FALSE(decode_request("").ok());
  EXPECT_FALSE(decode_request(encode(Request{0})).ok());
}

}  // namespace
}  // namespace tidemark
