#include "sweep/fitting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

std::optional<std::string> batch_of(const Words& command) {
  const auto found = find_batch_argument(command);
  if (!found) return std::nullopt;
  return found->name + ":" + std::to_string(found->value) + "@" + std::to_string(found->word) + "." +
         std::to_string(found->position);
}

TEST(FindBatchArgument, InEachForm) {
  EXPECT_EQ(batch_of({"python", "train.py", "--batch-size", "8"}), "--batch-size:8@3.0");
  EXPECT_EQ(batch_of({"python", "train.py", "--batch_size=12", "--lr", "1"}), "--batch_size:12@2.13");
  EXPECT_EQ(batch_of({"python", "train.py", "data.train.batch_size=32"}), "data.train.batch_size:32@2.22");
  EXPECT_EQ(batch_of({"python", "train.py", "-b", "4"}), "-b:4@3.0");
}

TEST(FindBatchArgument, PrefersTheOneOfADevice) {
  EXPECT_EQ(batch_of({"python", "t.py", "--batch-size", "64", "--micro-batch-size", "4"}), "--micro-batch-size:4@5.0");
  EXPECT_EQ(batch_of({"python", "t.py", "--per_device_train_batch_size", "2", "--train_batch_size", "64"}),
            "--per_device_train_batch_size:2@3.0");
}

TEST(FindBatchArgument, IgnoresOtherArguments) {
  EXPECT_EQ(batch_of({"python", "t.py", "--eval-batch-size", "8", "--batches", "9", "--bsz", "3"}), std::nullopt);
  EXPECT_EQ(batch_of({"python", "t.py", "--batch-size", "1"}), std::nullopt);
  EXPECT_EQ(batch_of({"python", "t.py", "--batch-size", "auto"}), std::nullopt);
  EXPECT_EQ(batch_of({"python", "t.py", "--batch-size"}), std::nullopt);
}

TEST(FindBatchDefault, OfTheOptionThatTheSourceDeclares) {
  const auto found = find_batch_default(R"(
p.add_argument("--steps", type=int, default=6)
p.add_argument("-b", "--batch-size", type=int, default=1024, metavar="N"); p.add_argument("--eval-batch", default=4))");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "--batch-size");
  EXPECT_EQ(found->value, 1024U);
  EXPECT_FALSE(find_batch_default(R"(p.add_argument("--batch-size", type=int, default=1))"));
  EXPECT_FALSE(find_batch_default(R"(p.add_argument("--batch-size", type=int))"));
  EXPECT_FALSE(find_batch_default(R"(p.add_argument("--batch-dir", default="8"))"));
  EXPECT_FALSE(find_batch_default("p.add_argument(\"--batch-size\", default="));
}

TEST(FindCheckpointingOption, ThatTheSourceContains) {
  const Words command = {"python", "t.py"};
  EXPECT_EQ(find_checkpointing_option(command, R"(p.add_argument("--grad-checkpointing", action="store_true"))"),
            "--grad-checkpointing");
  EXPECT_EQ(find_checkpointing_option(command, "p.add_argument('--activation_checkpointing')"),
            "--activation_checkpointing");
  EXPECT_EQ(find_checkpointing_option(command, "parser = HfArgumentParser(TrainingArguments)"),
            "--gradient_checkpointing");
  EXPECT_EQ(find_checkpointing_option(command, R"(p.add_argument("--checkpoint-dir"))"), std::nullopt);
  EXPECT_EQ(find_checkpointing_option(command, R"(p.add_argument("--no-grad-checkpointing"))"), std::nullopt);
  EXPECT_EQ(find_checkpointing_option(command, "# pass --grad-checkpointing"), std::nullopt);
  EXPECT_EQ(find_checkpointing_option({"python", "t.py", "--grad-checkpointing"}, R"("--grad-checkpointing")"),
            std::nullopt);
}

// A program that needs `fixed` bytes and `each` for a sample; both are divided among its ranks. 0: the trial fails.
struct Program {
  std::uint64_t fixed = 0;
  std::uint64_t each = 0;
  std::uint64_t checkpointed_each = 0;
  std::vector<std::string> planned = {};

  std::uint64_t need(std::uint64_t batch, bool checkpointed, std::uint64_t ranks) const {
    return (fixed + batch * (checkpointed ? checkpointed_each : each)) / ranks;
  }

  std::vector<std::string> find(std::uint64_t memory_bytes, const std::string& source = "") {
    ChangeSearch search;
    search.memory_bytes = memory_bytes;
    search.source = source;
    search.trial.command = {"python", "t.py", "--batch-size", "32"};
    search.need_bytes = need(32, false, search.ranks);
    const auto changes = find_fitting_changes(search, [&](const TrialRequest& trial, const std::string& change) {
      planned.push_back(change);
      std::uint64_t ranks = search.ranks;
      for (const std::string& word : trial.options) {
        if (word.starts_with("--nproc=")) ranks = std::stoull(word.substr(8));
      }
      const bool checkpointed = trial.command.back() == "--act-ckpt";
      return std::optional(need(std::stoull(trial.command[3]), checkpointed, ranks));
    });
    std::vector<std::string> texts;
    for (const PlannedChange& change : changes) texts.push_back(change.change + ": " + std::to_string(change.bytes));
    return texts;
  }
};

TEST(FindFittingChanges, TheLargestFractionOfTheBatch) {
  // 100 + 32 * 10 = 420 at first; 16: 260, 8: 180, 4: 140. The second trial is the answer.
  Program program{100, 10};
  EXPECT_THAT(program.find(150),
              ElementsAre("--batch-size 4, with gradient accumulation over 8 steps for a batch of 32: 140"));
  EXPECT_THAT(program.planned, ElementsAre("--batch-size 16", "--batch-size 4"));
}

TEST(FindFittingChanges, NoBatchIsSmallEnough) {
  Program program{100, 10};
  EXPECT_THAT(program.find(99), IsEmpty());
  EXPECT_THAT(program.planned, ElementsAre("--batch-size 16"));
}

TEST(FindFittingChanges, CheckpointingAndRanks) {
  Program program{100, 10, 1};
  EXPECT_THAT(program.find(140, "\"--act-ckpt\" fully_shard(model)"),
              ElementsAre("--batch-size 4, with gradient accumulation over 8 steps for a batch of 32: 140",
                          "--act-ckpt: 132", "4 GPUs (--nproc 4): 105"));
}

TEST(FindFittingChanges, AFailedTrialIsNoAnswer) {
  ChangeSearch search{{"H200", {}, {"python", "t.py", "--batch-size", "32"}}, 420, 150, 1, "\"--act-ckpt\""};
  std::vector<std::string> planned;
  const auto changes = find_fitting_changes(search, [&](const TrialRequest&, const std::string& change) {
    planned.push_back(change);
    return std::optional<std::uint64_t>();
  });
  EXPECT_THAT(changes, IsEmpty());
  EXPECT_THAT(planned, ElementsAre("--batch-size 16", "--act-ckpt", "--act-ckpt true"));
}

}  // namespace
}  // namespace tidemark
