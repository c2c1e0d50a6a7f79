#include "sweep/next_attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

RestartVerdict verdict_with(std::vector<RestartChange> changes, const std::string& torch_version = "2.11.0") {
  RestartVerdict verdict;
  verdict.ranks.resize(1);
  verdict.ranks[0].recording.process.torch_version = torch_version;
  verdict.first = 0;
  verdict.changes = std::move(changes);
  return verdict;
}

RestartChange smaller_batch(std::uint64_t divisor) {
  RestartChange change;
  change.kind = RestartChangeKind::batch;
  change.divisor = divisor;
  return change;
}

RestartChange allocator(const std::string& settings) {
  RestartChange change;
  change.kind = RestartChangeKind::allocator_settings;
  change.fix.emplace();
  change.fix->kind = settings.empty() ? OomFixKind::expandable : OomFixKind::settings;
  change.fix->settings = settings;
  return change;
}

std::vector<VariedArgument> named(const Words& texts) {
  auto arguments = parse_applied(texts);
  EXPECT_TRUE(arguments.ok());
  return *arguments;
}

TEST(NextAttempt, DividesTheBatchAndAccumulatesAsMuch) {
  RestartVerdict verdict = verdict_with({smaller_batch(4)});
  apply_changes(named({"batch=--batch-size", "accumulation=--accumulate"}),
                {"python", "train.py", "--batch-size", "32", "--accumulate=2"}, verdict);
  ASSERT_TRUE(verdict.next_attempt.has_value()) << verdict.not_applied;
  EXPECT_THAT(verdict.next_attempt->command, ElementsAre("python", "train.py", "--batch-size", "8", "--accumulate=8"));
  ASSERT_EQ(verdict.next_attempt->arguments.size(), 2U);
  EXPECT_EQ(verdict.next_attempt->arguments[0].was, "32");
  EXPECT_EQ(verdict.next_attempt->arguments[1].value, "8");
}

TEST(NextAttempt, AccumulatesWhereTheCommandDidNot) {
  RestartVerdict verdict = verdict_with({smaller_batch(2)});
  apply_changes(named({"batch=-b", "accumulation=--accumulate"}), {"python", "train.py", "-b", "32"}, verdict);
  ASSERT_TRUE(verdict.next_attempt.has_value()) << verdict.not_applied;
  EXPECT_THAT(verdict.next_attempt->command, ElementsAre("python", "train.py", "-b", "16", "--accumulate", "2"));
  EXPECT_EQ(verdict.next_attempt->arguments[1].was, std::nullopt);
}

TEST(NextAttempt, SettingsOfTheAllocatorAreInTheEnvironment) {
  RestartVerdict verdict = verdict_with({allocator("max_split_size_mb:64"), smaller_batch(2)});
  apply_changes(named({"batch=-b"}), {"python", "train.py", "-b", "32"}, verdict);
  ASSERT_TRUE(verdict.next_attempt.has_value());
  EXPECT_THAT(verdict.next_attempt->environment,
              ElementsAre(std::pair<std::string, std::string>("PYTORCH_ALLOC_CONF", "max_split_size_mb:64")));
  EXPECT_THAT(verdict.next_attempt->command, ElementsAre("python", "train.py", "-b", "32"));
}

TEST(NextAttempt, KeepsTheOtherSettings) {
  RestartVerdict verdict = verdict_with({allocator("")}, "2.4.0");
  verdict.ranks[0].recording.allocator_settings = "garbage_collection_threshold:0.8";
  apply_changes(named({"batch=-b"}), {"python"}, verdict);
  ASSERT_TRUE(verdict.next_attempt.has_value());
  EXPECT_THAT(verdict.next_attempt->environment,
              ElementsAre(std::pair<std::string, std::string>(
                  "PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.8,expandable_segments:True")));
}

TEST(NextAttempt, TakesNoChangeThatIsNotEnough) {
  RestartChange too_little = smaller_batch(2);
  too_little.enough = false;
  RestartVerdict verdict = verdict_with({too_little});
  apply_changes(named({"batch=-b"}), {"python", "-b", "8"}, verdict);
  EXPECT_FALSE(verdict.next_attempt.has_value());
  EXPECT_EQ(verdict.not_applied, "no change is one of the named arguments");
}

TEST(NextAttempt, SaysWhyTheBatchCannotBeDivided) {
  RestartVerdict verdict = verdict_with({smaller_batch(8)});
  apply_changes(named({"batch=-b"}), {"python", "-b", "4"}, verdict);
  EXPECT_EQ(verdict.not_applied, "-b 4 is too small to be divided by 8");
  apply_changes(named({"batch=-b"}), {"python"}, verdict);
  EXPECT_EQ(verdict.not_applied, "the command has no number after -b");
}

TEST(NextAttempt, PlannedCheckpointingIsAFlagOfTheProgram) {
  RestartChange planned;
  planned.kind = RestartChangeKind::planned;
  planned.planned = "--grad-checkpointing true";
  RestartVerdict verdict = verdict_with({planned});
  apply_changes(named({"checkpointing=--grad-checkpointing"}), {"python", "train.py"}, verdict);
  ASSERT_TRUE(verdict.next_attempt.has_value()) << verdict.not_applied;
  EXPECT_THAT(verdict.next_attempt->command, ElementsAre("python", "train.py", "--grad-checkpointing", "true"));
}

TEST(NextAttempt, NamesAreChecked) {
  EXPECT_FALSE(parse_applied({"rate=--lr"}).ok());
  EXPECT_FALSE(parse_applied({"batch"}).ok());
  EXPECT_FALSE(parse_applied({"batch=-b", "batch=-c"}).ok());
}

}  // namespace
}  // namespace tidemark
