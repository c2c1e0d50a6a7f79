// Messages and files of `tidemark run`, without PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A program with two processes that have events.
constexpr char kForks[] = FAKES_PROGRAM " forks " FAKES_TORCH_2 "/libc10_cuda.so";

class RunTest : public ::testing::Test {
 protected:
  /// Runs a script of the shell in the folder, in which $run is `tidemark run` without samples. Its exit code.
  int shell(const std::string& script) {
    std::ofstream(folder.at("script")) << "cd '" << folder.path() << "' && exec >out 2>err\n"
                                       << "export FAKES_SAID=$PWD/said FAKES_HEARD=$PWD/heard\n"
                                       << "run='" TIDEMARK_PROGRAM " run --no-samples --stacks none'\n"
                                       << script;
    // NOLINTNEXTLINE(cert-env33-c): a test
    const int status = std::system(("sh '" + folder.at("script") + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(folder.at(name));
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  [[nodiscard]] std::vector<std::string> messages() const { return lines("err"); }
  [[nodiscard]] std::size_t recordings() const {
    const auto is_recording = [](const auto& entry) { return entry.path().extension() == ".tide"; };
    return static_cast<std::size_t>(
        std::count_if(std::filesystem::directory_iterator(folder.path()), {}, is_recording));
  }

  TemporaryFolder folder;
};

TEST_F(RunTest, ThreeAtOnceHaveFilesOfTheirOwn) {
  EXPECT_EQ(shell(std::string("for n in 1 2 3; do $run -q -- ") + kForks + " & done; wait"), 0);
  EXPECT_EQ(recordings(), 6U);
}

TEST_F(RunTest, ARunWithForceLeavesTheFilesOfOneThatGoesOn) {
  const std::string forks = kForks;
  EXPECT_EQ(shell("$run -q -f -o run.tide -- sh -c '" + forks +
                  "; touch recorded; until test -e go; do sleep 0.01; done' &\n"
                  "until test -e recorded; do sleep 0.01; done\n"
                  "$run -q -f -o run.tide -- " +
                  forks + "; touch go; wait"),
            0);
  EXPECT_EQ(recordings(), 4U);
  EXPECT_TRUE(std::filesystem::exists(folder.at("run.2.tide")));
  EXPECT_THAT(messages(), ElementsAre("tidemark: run.tide is taken by another run: recording to run.2.tide"));
}

TEST_F(RunTest, ManyRecordingsAreNotListedOneByOne) {
  EXPECT_EQ(shell(std::string("$run -o run.tide -- sh -c 'for n in 1 2 3 4 5 6 7; do ") + kForks + "; done'"), 0);
  EXPECT_EQ(recordings(), 14U);
  const std::vector<std::string> said = messages();
  ASSERT_EQ(said.size(), 12U);
  EXPECT_THAT(said[0], StartsWith("tidemark: run.tide: "));
  EXPECT_THAT(said[1], StartsWith("tidemark: run.pid"));
  EXPECT_THAT(said[10], AllOf(StartsWith("tidemark: and 4 more recordings: "), HasSubstr(" events, ")));
  EXPECT_THAT(said[11], StartsWith("tidemark: to see the peak memory: tidemark summary run.tide run.pid"));
}

TEST_F(RunTest, NamesCannotControlTheTerminal) {
  EXPECT_EQ(shell("$run -q -- \"$(printf 'no\\033[31mprogram\\nof this name')\""), 127);
  EXPECT_THAT(messages(),
              ElementsAre("tidemark: cannot run no\\x1b[31mprogram\\x0aof this name: No such file or directory"));
}

TEST_F(RunTest, AnExistingFileIsRefusedAndALinkToo) {
  folder.write("run.tide", "precious");
  std::filesystem::create_symlink("run.tide", folder.at("link.tide"));
  EXPECT_EQ(shell("$run -o run.tide -- true"), 2);
  EXPECT_THAT(messages(), ElementsAre(HasSubstr("run.tide: already exists")));
  EXPECT_EQ(shell("$run -f -o link.tide -- true"), 2);
  EXPECT_THAT(messages(), ElementsAre(HasSubstr("link.tide: is a symbolic link")));
  EXPECT_EQ(std::filesystem::file_size(folder.at("run.tide")), 8U);
  EXPECT_EQ(shell("PMI_RANK=1 PMI_SIZE=2 $run -q -o run.tide -- true"), 0) << "another rank has another name";
}

TEST_F(RunTest, NothingWasRecordedForAReason) {
  const auto reason_of = [this](const std::string& command) {
    EXPECT_EQ(shell(command), 0);
    EXPECT_FALSE(messages().empty());
    return messages().empty() ? "" : messages().back();
  };
  EXPECT_THAT(reason_of("$run -o run.tide -- env -i true"),
              AllOf(HasSubstr("reported to the recorder"), HasSubstr("statically linked or setuid")));
  EXPECT_THAT(reason_of("$run -o run.tide -- true"), HasSubstr("no process of the program loaded PyTorch"));
  EXPECT_THAT(reason_of("$run --manual -o run.tide -- true"), HasSubstr("did not load the collector (--manual)"));
  std::filesystem::create_directory(folder.at("folder"));
  EXPECT_THAT(reason_of(std::string("$run -f -o folder -- ") + kForks),
              AllOf(HasSubstr("nothing was recorded: folder: "), HasSubstr("Is a directory")));
}

// The recorder raises its own limit once the program has started.
TEST_F(RunTest, TheProgramKeepsItsLimitOfDescriptors) {
  EXPECT_EQ(shell("ulimit -S -n 30\n"
                  "$run -q -- sh -c 'until awk \"/Max open files/ && \\$4 > 30 {found=1} END {exit !found}\" "
                  "/proc/$PPID/limits; do sleep 0.01; done; ulimit -n'"),
            0);
  EXPECT_THAT(lines("out"), ElementsAre("30"));
}

}  // namespace
}  // namespace tidemark::testing
