// Commands: what is sent, and what the coordinator makes of the answers.
#include "cluster/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cluster/command_round.h"
#include "cluster/node_commands.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

TEST(CommandMessages, ComeBackAsTheyWere) {
  const CommandRequest request{0xAB, "record dump", {0, 3}, "ann on login1"};
  EXPECT_EQ(decode_command_request(encode(request)).value(), request);
  const CommandOrder order{0xAB, CommandPhase::commit, "record dump", {4711, 4712}};
  EXPECT_EQ(decode_command_order(encode(order)).value(), order);
  const CommandAnswer answer{0xAB, CommandPhase::prepare, "b", {{"b", 3, 4711, true, "a\nb"}}};
  const auto read = decode_command_answer(encode(answer));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->ranks.at(0).rank, 3U);
  EXPECT_EQ(read->ranks.at(0).text, "a?b");
  EXPECT_FALSE(decode_command_request(encode(CommandRequest{0, "record dump", {}, ""})).ok());
  EXPECT_FALSE(decode_command_order("\x10\x09").ok());  // an unknown phase
  EXPECT_FALSE(decode_command_answer(std::string(kMaxCommandBytes + 1, 'x')).ok());
}

/// Ranks 0 and 1 on node a, 2 on node b.
class CommandRoundTest : public ::testing::Test {
 protected:
  CommandRoundTest() {
    job_.nodes.resize(2);
    job_.nodes[0].name = "a";
    job_.nodes[1].name = "b";
    for (std::uint32_t n = 0; n < 3; ++n) {
      JobRank& rank = job_.ranks.emplace_back();
      rank.rank = n;
      rank.node = n / 2;
      rank.pid = 100 + n;
    }
  }
  CommandRound round(std::vector<std::uint32_t> ranks = {}, std::string command = "record dump") {
    return {{1, std::move(command), std::move(ranks), "ann"}, job_, now_};
  }
  static CommandAnswer says(const std::string& node, CommandPhase phase, std::vector<std::int64_t> pids,
                            bool ok = true) {
    CommandAnswer answer{1, phase, node, {}};
    for (const std::int64_t pid : pids) answer.ranks.push_back({node, {}, pid, ok, ok ? "fine" : "it cannot"});
    return answer;
  }
  static std::vector<std::string> sent(CommandRound& round) {
    std::vector<std::string> all;
    for (const auto& [node, order] : round.take_orders()) {
      std::string text = node + " " + std::string(name_in(kCommandPhaseNames, order.phase));
      for (const std::int64_t pid : order.pids) text += " " + std::to_string(pid);
      all.push_back(text);
    }
    return all;
  }

  JobReport job_;
  CommandRound::Clock::time_point now_;
};

using Sent = std::vector<std::string>;

TEST_F(CommandRoundTest, AllAreAskedBeforeAnyBegins) {
  CommandRound command = round();
  EXPECT_EQ(sent(command), (Sent{"a prepare 100 101", "b prepare 102"}));
  command.take(says("a", CommandPhase::prepare, {100, 101}), now_);
  EXPECT_THAT(sent(command), IsEmpty());
  command.take(says("a", CommandPhase::commit, {100, 101}), now_);  // not yet
  command.take(says("b", CommandPhase::prepare, {102}), now_);
  EXPECT_EQ(sent(command), (Sent{"a commit 100 101", "b commit 102"}));
  command.take(says("b", CommandPhase::prepare, {102}), now_);  // twice
  command.take(says("b", CommandPhase::commit, {102}), now_);
  EXPECT_FALSE(command.is_over());
  command.take(says("a", CommandPhase::commit, {100, 101}), now_);
  EXPECT_TRUE(command.is_over());
  EXPECT_EQ(command.report().state, CommandState::done);
  EXPECT_EQ(command.report().ranks[2].text, "fine");
}

TEST_F(CommandRoundTest, OneThatCannotRefusesItForAll) {
  CommandRound command = round();
  static_cast<void>(sent(command));
  command.take(says("a", CommandPhase::prepare, {100, 101}), now_);
  command.take(says("b", CommandPhase::prepare, {102}, false), now_);
  EXPECT_EQ(sent(command), (Sent{"a cancel 100 101", "b cancel 102"}));
  EXPECT_EQ(command.report().state, CommandState::refused);
  EXPECT_EQ(command.report().reason, "rank 2 (node b): it cannot");
}

TEST_F(CommandRoundTest, OneThatDoesNotAnswerRefusesItForAll) {
  CommandRound command = round();
  static_cast<void>(sent(command));
  command.take(says("a", CommandPhase::prepare, {100, 101}), now_);
  command.update(now_ + CommandRound::kPrepare - 1ms);
  EXPECT_FALSE(command.is_over());
  command.update(now_ + CommandRound::kPrepare);
  EXPECT_TRUE(command.is_over());
  EXPECT_EQ(sent(command), (Sent{"a cancel 100 101", "b cancel 102"}));
  EXPECT_EQ(command.report().reason, "rank 2 (node b): its agent did not answer in time");
  command.take(says("b", CommandPhase::prepare, {102}), now_ + 6s);
  EXPECT_THAT(sent(command), IsEmpty());
}

TEST_F(CommandRoundTest, AnAnswerForAnotherNodesRankDoesNotCount) {
  CommandRound command = round({2});
  EXPECT_EQ(sent(command), Sent{"b prepare 102"});
  command.take(says("a", CommandPhase::prepare, {102}), now_);
  EXPECT_THAT(sent(command), IsEmpty());
}

TEST_F(CommandRoundTest, AfterTheCommitItIsDoneOrFailed) {
  CommandRound command = round({2});
  command.take(says("b", CommandPhase::prepare, {102}), now_);
  command.update(now_ + CommandRound::kPrepare);
  EXPECT_FALSE(command.is_over());
  command.update(now_ + CommandRound::kCommit);
  EXPECT_EQ(command.report().state, CommandState::failed);
  EXPECT_THAT(command.report().reason, HasSubstr("rank 2 (node b): no answer in time"));
}

TEST_F(CommandRoundTest, IsRefusedAtOnceForRanksThatAreNotThere) {
  EXPECT_EQ(round({7}).report().reason, "there is no rank 7");
  EXPECT_EQ(round({}, "rm -rf").report().reason, "there is no such command");
  job_.ranks[2].current = false;
  EXPECT_EQ(round().report().reason, "rank 2 (node b): its node is not heard");
  EXPECT_FALSE(round({0}).is_over());
  job_.ranks.clear();
  EXPECT_EQ(round().report().reason, "the job has no ranks");
}

/// A machine without recorders.
class NodeCommandsTest : public ::testing::Test {
 protected:
  NodeCommandsTest() : engine_({.follow = false}) {}
  void take(CommandPhase phase, NodeCommands::Clock::duration after = {}) {
    commands_.take({1, phase, "record dump", {100}}, engine_, {{100, 5, {}, {}, ""}}, now_ + after);
  }

  MonitorEngine engine_;
  NodeCommands commands_{"b"};
  NodeCommands::Clock::time_point now_;
};

TEST_F(NodeCommandsTest, ARankWithoutAFlightRecorderCannotDump) {
  take(CommandPhase::prepare);
  const auto answers = commands_.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].phase, CommandPhase::prepare);
  EXPECT_EQ(answers[0].ranks.at(0).rank, 5U);
  EXPECT_FALSE(answers[0].ranks.at(0).ok);
  EXPECT_THAT(answers[0].ranks.at(0).text, HasSubstr("not recorded by a flight recorder"));
}

TEST_F(NodeCommandsTest, FollowsAnOrderOnceAndInTime) {
  take(CommandPhase::commit);  // was not prepared
  EXPECT_THAT(commands_.take_answers(), IsEmpty());
  take(CommandPhase::prepare);
  take(CommandPhase::prepare);
  EXPECT_EQ(commands_.take_answers().size(), 1U);
  take(CommandPhase::commit, NodeCommands::kPrepared);  // too late
  EXPECT_THAT(commands_.take_answers(), IsEmpty());
  take(CommandPhase::prepare);
  take(CommandPhase::cancel);
  take(CommandPhase::commit);
  EXPECT_EQ(commands_.take_answers().size(), 1U);
  take(CommandPhase::prepare);
  take(CommandPhase::commit);
  take(CommandPhase::commit);
  EXPECT_EQ(commands_.take_answers().size(), 2U);
}

}  // namespace
}  // namespace tidemark
