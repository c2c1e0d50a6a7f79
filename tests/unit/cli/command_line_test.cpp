#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

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

}  // namespace
}  // namespace tidemark::cli
