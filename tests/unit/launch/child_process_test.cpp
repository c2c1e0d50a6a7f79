// The program started by `tidemark run`: how it is found, its input, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launch/environment.h"
#include "parent.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using testing::Parent;
using testing::Words;

Outcome shell(const std::string& script, const Words& environment = {}) {
  return Parent({"sh", "-c", script}, environment).wait();
}

TEST(ChildProcessTest, ExitCodesAreTheProgramsOwn) {
  for (const int code : {0, 1, 42, 127, 255}) EXPECT_EQ(shell("exit " + std::to_string(code)).exit_code(), code);
}

TEST(ChildProcessTest, OutputArgumentsAndEnvironmentAreTheProgramsOwn) {
  EXPECT_EQ(Parent({"printf", "%s|", "a b", "", "$HOME"}).wait().output, "a b||$HOME|");
  EXPECT_EQ(shell("printf '%s %s' \"$TIDE_A\" \"$TIDE_B\"", {"TIDE_A=x=y", "TIDE_B="}).output, "x=y ");
}

TEST(ChildProcessTest, DiesOfTheSameSignal) {
  for (const int signal : {SIGTERM, SIGKILL, SIGINT, SIGSEGV, SIGABRT, SIGPIPE}) {
    EXPECT_EQ(shell("kill -" + std::to_string(signal) + " $$").signal(), signal);
  }
}

TEST(ChildProcessTest, MissingProgram) {
#ifdef TIDEMARK_SPAWN_NEVER_FAILS
  GTEST_SKIP() << "posix_spawn() does not fail with ThreadSanitizer";
#endif
  const Outcome outcome = Parent({"no-such-program-anywhere"}).wait();
  EXPECT_EQ(outcome.exit_code(), 127);
  EXPECT_EQ(outcome.output, "cannot run no-such-program-anywhere: No such file or directory\n");
}

TEST(ChildProcessTest, FileThatIsNotAProgram) {
#ifdef TIDEMARK_SPAWN_NEVER_FAILS
  GTEST_SKIP() << "posix_spawn() does not fail with ThreadSanitizer";
#endif
  const std::string path = ::testing::TempDir() + "tidemark_no_program_" + std::to_string(::getpid());
  std::ofstream(path) << "data";
  const Outcome outcome = Parent({path}).wait();
  EXPECT_EQ(outcome.exit_code(), 126);
  EXPECT_THAT(outcome.output, HasSubstr("Permission denied"));
  std::filesystem::remove(path);
}

TEST(PreloadVariable, KeepsExistingPreloads) {
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so");
  ::setenv("LD_PRELOAD", "", 1);
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so");
  ::setenv("LD_PRELOAD", "/lib/theirs.so /lib/b.so", 1);
  EXPECT_EQ(preload_variable("/lib/ours.so"), "LD_PRELOAD=/lib/ours.so:/lib/theirs.so /lib/b.so");
  ::unsetenv("LD_PRELOAD");
}

}  // namespace
}  // namespace tidemark
