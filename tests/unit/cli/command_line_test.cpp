#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace tidemark::cli {
namespace {

using ::testing::ElementsAre;

TEST(CommandLine, GivesBackTheOptionsThatWereGiven) {
  CLI::App app;
  CommandLine line(app);
  std::string gpu = "auto";
  std::string fit;
  std::uint64_t memory = 0;
  std::uint64_t steps = 3;
  bool force = false;
  std::vector<std::string> varied;
  std::vector<std::string> program;
  line.add_option("--gpu", gpu, "");
  line.add_option("--fit", fit, "");
  line.add_option("--memory", memory, "")->bytes(1);
  line.add_option("--steps", steps, "");
  line.add_flag("-f,--force", force, "");
  line.add_option("--vary", varied, "")->one_at_a_time();
  line.add_option("PROGRAM", program, "")->required();
  line.ends_with_a_program();
  app.parse("--memory 2KiB --fit batch -f --vary a=1 --vary b=1 train.py --steps 9", false);
  EXPECT_THAT(line.words_given({"--fit"}), ElementsAre("--memory=2048", "--force", "--vary=a=1", "--vary=b=1"));
  EXPECT_THAT(program, ElementsAre("train.py", "--steps", "9"));
}

TEST(CommandLine, AProgramGetsItsArgumentsAsTheyAre) {
  CLI::App app;
  CommandLine line(app);
  std::vector<std::string> program;
  line.add_option("PROGRAM", program, "")->required();
  line.ends_with_a_program();
  const std::vector<const char*> words = {"tidemark", "--",  "python",    "-c", "[1,2]",
                                          "[[3,4]]",  "{a}", "\x01[6,7]", "",   "--x=[5]"};
  std::vector<std::string> reversed = protected_words(static_cast<int>(words.size()), words.data());
  std::reverse(reversed.begin(), reversed.end());
  reversed.pop_back();
  app.parse(reversed);  // parse() takes them from the end
  EXPECT_THAT(program, ElementsAre("python", "-c", "[1,2]", "[[3,4]]", "{a}", "\x01[6,7]", "", "--x=[5]"));
}

}  // namespace
}  // namespace tidemark::cli
