#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/planned_job.h"

namespace tidemark {
namespace {

std::string ranks_of(const std::vector<std::string>& command) {
  const auto ranks = ranks_command(command, "/opt/python", 8);
  return ranks ? fmt::format("{}", fmt::join(*ranks, " ")) : ranks.error().message;
}

TEST(RanksCommandTest, TheLauncherStandsBeforeTheProgram) {
  const std::string launcher = " -m torch.distributed.run --standalone --nproc-per-node 8 ";
  EXPECT_EQ(ranks_of({"python", "train.py", "-m", "2"}), "python" + launcher + "train.py -m 2");
  EXPECT_EQ(ranks_of({"/usr/bin/python3.11", "-u", "-X", "dev", "-Werror", "train.py"}),
            "/usr/bin/python3.11 -u -X dev -Werror" + launcher + "train.py");
  EXPECT_EQ(ranks_of({"python", "-m", "pkg.train", "-x"}), "python" + launcher + "-m pkg.train -x");
  EXPECT_EQ(ranks_of({"./train", "--fast"}), "/opt/python" + launcher + "--no-python ./train --fast");
}

TEST(RanksCommandTest, CommandsWithoutRanksFail) {
  EXPECT_EQ(ranks_of({"python", "-u", "-c", "pass"}),
            "--nproc: a program in the command line (-c) has no ranks; write it to a file");
  EXPECT_EQ(ranks_of({"python", "-u"}), "--nproc: python is given no program to run");
  EXPECT_EQ(ranks_of({"python", "-"}), "--nproc: python is given no program to run");
}

}  // namespace
}  // namespace tidemark
