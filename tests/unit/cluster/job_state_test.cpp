#include "cluster/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/cluster/scripted_node.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::uint64_t used_of(const JobState& job, const std::string& node) {
  return job.nodes().at(node).decoder.state().state.devices[0].latest.used_bytes.value_or(0);
}

class JobStateTest : public ::testing::Test {
 protected:
  JobStateTest() { node_.add_rank(0, kGiB); }

  std::string next(std::uint64_t used_bytes) {
    node_.state().devices[0].latest.used_bytes = used_bytes;
    return node_.message(++seconds_ * kSecondNs);
  }
  JobState::Taken take(const std::string& message) { return job_.take(node_.token(), message, now_ += kSecondNs); }

  ScriptedNode node_{"a", 1};
  JobState job_;
  std::uint64_t seconds_ = 0;
  std::uint64_t now_ = 100 * kSecondNs;  // another clock than the agent's
};

TEST_F(JobStateTest, KeepsTheNewestState) {
  for (std::uint64_t n = 1; n <= 40; ++n) {
    const auto taken = take(next(n * kGiB));
    ASSERT_TRUE(taken.accepted) << n << taken.problem;
    EXPECT_EQ(used_of(job_, "a"), n * kGiB);
  }
  EXPECT_EQ(job_.nodes().at("a").taken, 40U);
  EXPECT_EQ(job_.nodes().at("a").lost, 0U);
  EXPECT_EQ(job_.nodes().at("a").ranks[0].rank, 0U);
}

TEST_F(JobStateTest, ALostChangeIsFollowedByARequest) {
  EXPECT_TRUE(take(next(1 * kGiB)).accepted);
  static_cast<void>(next(2 * kGiB));  // lost
  const auto gap = take(next(3 * kGiB));
  EXPECT_FALSE(gap.accepted);
  EXPECT_EQ(gap.ask, "a");
  EXPECT_THAT(gap.problem, IsEmpty());
  EXPECT_EQ(used_of(job_, "a"), 1 * kGiB);  // not a mixture
  // Asked at most once a second.
  EXPECT_THAT(job_.take("a", next(4 * kGiB), now_ + 1).ask, IsEmpty());
  node_.sender().send_full_next();
  EXPECT_TRUE(take(next(5 * kGiB)).accepted);
  EXPECT_EQ(used_of(job_, "a"), 5 * kGiB);
  EXPECT_TRUE(take(next(6 * kGiB)).accepted);
  EXPECT_EQ(job_.nodes().at("a").lost, 3U);
}

TEST_F(JobStateTest, WithoutAnAnswerTheNextFullStateRecovers) {
  EXPECT_TRUE(take(next(1 * kGiB)).accepted);
  static_cast<void>(next(2 * kGiB));  // lost
  std::uint64_t n = 2;
  while (!take(next(++n * kGiB)).accepted) ASSERT_LT(n, 40U);
  EXPECT_EQ(used_of(job_, "a"), n * kGiB);
  EXPECT_EQ(n, 31U);  // 30 s after the first full state
}

TEST_F(JobStateTest, DuplicatesAndLateMessagesAreIgnored) {
  const std::string first = next(1 * kGiB);
  const std::string second = next(2 * kGiB);
  const std::string third = next(3 * kGiB);
  EXPECT_TRUE(take(first).accepted);
  EXPECT_TRUE(take(second).accepted);
  EXPECT_FALSE(take(second).accepted);
  EXPECT_FALSE(take(first).accepted);
  EXPECT_EQ(used_of(job_, "a"), 2 * kGiB);
  EXPECT_TRUE(take(third).accepted);
  EXPECT_EQ(job_.nodes().at("a").repeated, 2U);
}

TEST_F(JobStateTest, ReorderedMessagesGiveAStateThatWasSent) {
  const std::string first = next(1 * kGiB);
  const std::string second = next(2 * kGiB);
  const std::string third = next(3 * kGiB);
  EXPECT_TRUE(take(first).accepted);
  EXPECT_EQ(take(third).ask, "a");
  EXPECT_TRUE(take(second).accepted);
  EXPECT_EQ(used_of(job_, "a"), 2 * kGiB);
  EXPECT_TRUE(take(third).accepted);
  EXPECT_EQ(used_of(job_, "a"), 3 * kGiB);
}

TEST_F(JobStateTest, AReceiverThatStartsLaterAsks) {
  static_cast<void>(next(1 * kGiB));
  EXPECT_EQ(take(next(2 * kGiB)).ask, "a");
  EXPECT_FALSE(job_.nodes().at("a").decoder.has_state());
}

TEST_F(JobStateTest, ARestartedAgentReplacesTheOneBefore) {
  EXPECT_TRUE(take(next(1 * kGiB)).accepted);
  ScriptedNode again("a", 2);
  again.add_rank(0, 7 * kGiB);
  EXPECT_TRUE(take(again.message(kSecondNs)).accepted);
  EXPECT_EQ(used_of(job_, "a"), 7 * kGiB);
  EXPECT_EQ(job_.nodes().size(), 1U);
  EXPECT_FALSE(job_.nodes().at("a").has_rival(now_));
}

TEST_F(JobStateTest, OfTwoAgentsOfOneNameTheLaterCountsUntilItIsSilent) {
  EXPECT_TRUE(take(next(1 * kGiB)).accepted);
  ScriptedNode other("a", 2);
  other.add_rank(0, 7 * kGiB);
  EXPECT_TRUE(take(other.message(kSecondNs)).accepted);
  EXPECT_FALSE(take(next(2 * kGiB)).accepted);
  EXPECT_TRUE(take(other.message(2 * kSecondNs)).accepted);
  EXPECT_EQ(used_of(job_, "a"), 7 * kGiB);
  EXPECT_TRUE(job_.nodes().at("a").has_rival(now_));
  now_ += 10 * kSecondNs;  // the later one was killed
  EXPECT_EQ(take(next(3 * kGiB)).ask, "a");
  node_.sender().send_full_next();
  EXPECT_TRUE(take(next(4 * kGiB)).accepted);
  EXPECT_EQ(used_of(job_, "a"), 4 * kGiB);
}

TEST_F(JobStateTest, AnAgentThatLeavesMayComeBack) {
  EXPECT_TRUE(take(next(1 * kGiB)).accepted);
  EXPECT_TRUE(take(node_.sender().leave(++seconds_ * kSecondNs)).accepted);
  EXPECT_TRUE(job_.nodes().at("a").left);
  node_.sender().send_full_next();
  EXPECT_TRUE(take(next(2 * kGiB)).accepted);
  EXPECT_FALSE(job_.nodes().at("a").left);
}

// The clocks of the machines differ by 90 s here; the network takes 1 to 3 s.
TEST_F(JobStateTest, AgesAreOfTheSenderNotOfTheConnection) {
  EXPECT_TRUE(job_.take("a", next(1 * kGiB), 91 * kSecondNs).accepted);  // elapsed 1 s
  EXPECT_TRUE(job_.take("a", next(2 * kGiB), 94 * kSecondNs).accepted);  // elapsed 2 s: 2 s late
  EXPECT_EQ(job_.nodes().at("a").age_ns(94 * kSecondNs), 2 * kSecondNs);
  EXPECT_EQ(job_.nodes().at("a").age_ns(104 * kSecondNs), 12 * kSecondNs);
  // A broken connection held these two back for a minute: they are not new when they come.
  const std::string third = next(3 * kGiB);
  EXPECT_TRUE(job_.take("a", third, 154 * kSecondNs).accepted);
  EXPECT_EQ(job_.nodes().at("a").age_ns(154 * kSecondNs), 61 * kSecondNs);
}

TEST(ReceiverClock, FollowsDriftingClocks) {
  ReceiverClock clock;
  // The sender's clock is slow by 1 in 1,000: after an hour by 3.6 s.
  std::uint64_t elapsed = 0;
  std::uint64_t now = 50 * kSecondNs;
  for (int second = 0; second < 3600; ++second) {
    elapsed += kSecondNs - kSecondNs / 1000;
    now += kSecondNs;
    clock.take(elapsed, now);
  }
  EXPECT_LT(clock.age_ns(elapsed, now), 7 * kSecondNs / 10);
}

TEST_F(JobStateTest, RefusesWhatIsHostile) {
  EXPECT_THAT(take("\xFF\xFF\xFF").problem, HasSubstr("protobuf"));
  EXPECT_THAT(job_.take("b", next(kGiB), now_).problem, HasSubstr("another node"));
  EXPECT_EQ(job_.refused(), 2U);
  EXPECT_THAT(job_.nodes(), IsEmpty());
  // A damaged state within a right envelope.
  AgentMessage damaged;
  damaged.node = "a";
  damaged.instance = 1;
  damaged.sequence = 1;
  damaged.full = true;
  damaged.state = "damaged";
  const auto taken = take(encode(damaged));
  EXPECT_FALSE(taken.accepted);
  EXPECT_EQ(taken.ask, "a");
  EXPECT_EQ(job_.nodes().at("a").refused, 1U);
}

TEST_F(JobStateTest, ANodeCannotFloodTheReceiver) {
  std::size_t accepted = 0;
  for (int n = 0; n < 1000; ++n)
    accepted += job_.take("a", next(kGiB), now_ + static_cast<std::uint64_t>(n)).accepted ? 1U : 0U;
  EXPECT_LE(accepted, 17U);
  EXPECT_GE(job_.nodes().at("a").refused, 900U);
  // And recovers once it sends at the right rate.
  node_.sender().send_full_next();
  now_ += 10 * kSecondNs;
  EXPECT_TRUE(take(next(9 * kGiB)).accepted);
}

TEST_F(JobStateTest, TheNumberOfNodesIsBounded) {
  AgentMessage message;
  message.instance = 1;
  message.sequence = 1;
  message.full = true;
  message.state = "x";
  for (std::size_t n = 0; n <= JobState::kMaxNodes; ++n) {
    message.node = "n" + std::to_string(n);
    static_cast<void>(job_.take(message.node, encode(message), now_));
  }
  EXPECT_EQ(job_.nodes().size(), JobState::kMaxNodes);
  EXPECT_EQ(job_.refused(), 1U);
}

TEST(StepPace, AreMeansOfTheLastTwoMinutes) {
  StepPace times;
  EXPECT_EQ(times.steps(), std::nullopt);
  times.take(0, 10);
  times.take(1 * kSecondNs, 12);
  EXPECT_EQ(times.steps(), 12U);
  EXPECT_EQ(times.seconds(), std::nullopt);  // two steps
  times.take(2 * kSecondNs, 12);             // none since
  times.take(3 * kSecondNs, 16);
  EXPECT_DOUBLE_EQ(times.seconds().value_or(0), 0.5);  // 6 steps in 3 s
  times.take(4 * kSecondNs, 2);                        // another process
  EXPECT_EQ(times.seconds(), std::nullopt);
  for (std::uint64_t second = 5; second <= 400; ++second)
    times.take(second * kSecondNs, second < 200 ? second : 2 * second - 200);
  EXPECT_DOUBLE_EQ(times.seconds().value_or(0), 0.5);
}

}  // namespace
}  // namespace tidemark
