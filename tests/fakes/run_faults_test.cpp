// `tidemark run` and the other commands in a faulty environment: the program runs as it would without them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/scoped_fd.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A folder in which scripts run. They can use $TIDEMARK, and $RECORD: `tidemark run` to run.tide.
class RunFaults : public ::testing::Test {
 protected:
  struct Outcome {
    int exit_code = -1;
    std::string output;
  };

  RunFaults() {
    ::setenv("TIDEMARK", TIDEMARK_PROGRAM, 1);
    ::setenv("RECORD", TIDEMARK_PROGRAM " run -o run.tide --stacks none --", 1);
    // Uses the fakes like a training program uses PyTorch: some 10,000 events.
    ::setenv("TRAIN", FAKES_PROGRAM " threads " FAKES_TORCH_2 "/libc10_cuda.so " FAKES_TORCH_2 "/libextension.so", 1);
    ::setenv("FAKES_SAID", folder_.at("said").c_str(), 1);
    ::setenv("FAKES_HEARD", folder_.at("heard").c_str(), 1);
  }

  /// The output of a script for sh, and its exit code: 128 + n after signal n.
  Outcome run(const std::string& script) {
    const std::string command = "cd " + folder_.path() + " && exec timeout -k 5 60 sh -c '" + script + "'";
    Outcome outcome;
    FILE* pipe = ::popen(command.c_str(), "r");
    char part[4096];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe)) > 0;) outcome.output.append(part, got);
    const int status = ::pclose(pipe);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }

  /// A full pipe "full", with a reader that does not read.
  [[nodiscard]] ScopedFd make_full_pipe() const {
    EXPECT_EQ(::mkfifo(folder_.at("full").c_str(), 0600), 0);
    ScopedFd reader(::open(folder_.at("full").c_str(), O_RDWR | O_NONBLOCK));
    while (::write(reader.get(), "x", 1) == 1) {
    }
    return reader;
  }

  TemporaryFolder folder_;
};

constexpr const char* kUselessStderr[] = {"2>/dev/full", "2>&-", "<&- 2>&-", "2>/dev/null"};

TEST_F(RunFaults, TheProgramRunsWhateverStderrIs) {
  for (const std::string redirection : kUselessStderr) {
    // There is a message at the end; with an output that cannot be written, before the start too.
    EXPECT_EQ(run("$RECORD sh -c \"echo ran; exit 7\" " + redirection).exit_code, 7) << redirection;
    const Outcome without = run("$TIDEMARK run -o no/such/x.tide -- sh -c \"echo ran; exit 7\" " + redirection);
    EXPECT_EQ(without.exit_code, 7) << redirection;
    EXPECT_EQ(without.output, "ran\n");
    EXPECT_EQ(run("$TIDEMARK run -- no-such-program " + redirection).exit_code, 127) << redirection;
  }
}

TEST_F(RunFaults, ProgramRunsWithUnreadStderr) {
  const Outcome outcome = run("{ { $RECORD sh -c \"sleep 0.1; exit 7\" 2>&1; echo $? >&3; } | true; } 3>&1");
  EXPECT_EQ(outcome.output, "7\n");
}

// The library in the program prints a message as well: that there is no recorder.
TEST_F(RunFaults, UnreadMessageDoesNotEndTheProgram) {
  ::setenv("TIDEMARK_SOCKET", "/nowhere", 1);
  const std::string program = "LD_PRELOAD=" TIDEMARK_PRELOAD " $TRAIN 2>&1 >out";
  EXPECT_THAT(run(program).output, HasSubstr("the recorder cannot be reached"));
  EXPECT_EQ(run("{ { sleep 0.1; " + program + "; echo $? >&3; } | true; } 3>&1").output, "0\n");
  ::unsetenv("TIDEMARK_SOCKET");
}

// The first of two processes has more events than its file may have bytes.
TEST_F(RunFaults, MessagesInTheMiddleEndNothing) {
  run("echo \"ulimit -S -f unlimited; $TRAIN >out && $TRAIN >out && exit 7\" >program");
  const std::string limited = "ulimit -S -f 20; $TIDEMARK run -f -o run.tide --stacks none -- sh program ";
  for (const std::string redirection : kUselessStderr) {
    EXPECT_EQ(run(limited + redirection).exit_code, 7) << redirection;
    const Outcome read = run("$TIDEMARK dump run.tide 2>&1 >/dev/null");
    EXPECT_EQ(read.exit_code, 0) << read.output;
  }
  EXPECT_THAT(run(limited + "2>&1").output, HasSubstr("File too large")) << "there was something to say";
}

// As with `tidemark run ... 2>&1 | less`. There is a message in the middle, about a file that grew too large.
TEST_F(RunFaults, TheRecordingGoesOnWhenStderrIsAPipeThatIsFull) {
  run("echo \"ulimit -S -f unlimited; $TRAIN >out && $TRAIN >out && exit 7\" >program");
  const ScopedFd reader = make_full_pipe();
  const Outcome outcome = run("ulimit -S -f 20; $TIDEMARK run -f -o run.tide --stacks none -- sh program 2>full");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(run("$TIDEMARK dump run.tide >/dev/null").exit_code, 0);
  EXPECT_EQ(run("ls run.*tide | wc -l").output, "2\n") << "the second process is recorded too";
}

// The program reads the pipe at its end. The message was that its output cannot be written.
TEST_F(RunFaults, MessagesThatWereDroppedAreCounted) {
  const ScopedFd reader = make_full_pipe();
  const Outcome outcome =
      run("$TIDEMARK run -o no/such/x.tide -- sh -c \"dd if=full iflag=nonblock bs=65536 >out 2>&1; exit 7\" 2>full");
  EXPECT_EQ(outcome.exit_code, 7);
  char said[4096];
  const ssize_t length = ::read(reader.get(), said, sizeof(said));
  ASSERT_GT(length, 0);
  EXPECT_EQ(std::string(said, static_cast<std::size_t>(length)),
            "tidemark: 1 message was not written to stderr, which nobody read\n");
}

// A file that takes the number of a closed descriptor would get the messages and the program's output.
TEST_F(RunFaults, ClosedDescriptorsAreClosedInTheProgram) {
  run("echo \"for n in 0 1 2; do test -e /proc/\\$\\$/fd/\\$n && echo \\$n >>\\$1; done; exit 0\" >look");
  for (const std::string redirection : {"", "<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(run("sh look plain " + redirection).exit_code, 0);
    EXPECT_EQ(run("$RECORD sh look recorded " + redirection).exit_code, 0);
  }
  EXPECT_EQ(run("cmp plain recorded && wc -l <plain").output, "9\n") << "3 + 2 + 2 + 2 + 0";
}

TEST_F(RunFaults, ResultsThatCannotBeWrittenAreAnError) {
  ASSERT_EQ(run("$RECORD $TRAIN >out 2>&1").exit_code, 0);
  for (const std::string command :
       {"--help", "--version", "summary --help", "summary run.tide", "dump run.tide", "export run.tide --to csv",
        "export run.tide --to speedscope -o -", "completion bash", "devices", "timeline run.tide"}) {
    const Outcome full = run("$TIDEMARK " + command + " 2>&1 >/dev/full");
    EXPECT_EQ(full.exit_code, 2) << command;
    EXPECT_EQ(full.output, "tidemark: cannot write to stdout: No space left on device\n") << command;
    EXPECT_EQ(run("$TIDEMARK " + command + " 2>&1 >&-").output,
              "tidemark: cannot write to stdout: Bad file descriptor\n")
        << command;
    EXPECT_EQ(run("$TIDEMARK " + command + " >/dev/full 2>/dev/full").exit_code, 2) << command;
  }
}

// As cat does: the reader that exited is the reason.
TEST_F(RunFaults, AReaderThatLeavesEndsACommandQuietly) {
  ASSERT_EQ(run("$RECORD $TRAIN >out 2>&1").exit_code, 0);
  EXPECT_EQ(run("{ { $TIDEMARK dump run.tide 2>said; echo $? >&3; } | true; } 3>&1; cat said").output, "141\n");
}

// The program trains, the recorder runs out of memory, and the program trains once more.
TEST_F(RunFaults, ARecorderOutOfMemoryLeavesTheProgramAlone) {
  ::setenv("NO_MEMORY_FROM", folder_.at("exhausted").c_str(), 1);
  for (const std::string bytes : {"0", "3000"}) {
    ::setenv("NO_MEMORY_BYTES", bytes.c_str(), 1);
    const Outcome outcome =
        run("rm -f exhausted; echo \"unset NO_MEMORY_FROM; $TRAIN >out && touch exhausted && sleep 0.3 && $TRAIN "
            ">again && test -s again && "
            "exit 7\""
            " >program; LD_PRELOAD=" FAKES_NO_MEMORY " $TIDEMARK run -f -o run.tide --stacks none -- sh program 2>&1");
    EXPECT_EQ(outcome.exit_code, 7) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("out of memory")) << bytes;
    EXPECT_THAT(outcome.output, Not(HasSubstr("tidemark summary` needs"))) << bytes;
    EXPECT_EQ(run("$TIDEMARK summary run.tide 2>&1").exit_code, 0) << "what was written reads";
  }
  ::unsetenv("NO_MEMORY_FROM");
}

TEST_F(RunFaults, PipesAreNoPlaceForARecording) {
  const Outcome outcome = run("mkfifo pipe; $TIDEMARK run -f -o pipe -- sh -c \"exit 7\" 2>&1");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.output,
            "tidemark: pipe: a pipe or socket, not a regular file; running the program without recording\n");
}

TEST_F(RunFaults, MaxSizeIsASizeAndIsKept) {
  for (const std::string size : {"-1", "-1MB", "+5MB"}) {
    const Outcome outcome = run("$TIDEMARK run --max-size " + size + " -- touch started 2>&1");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.output, HasSubstr("--max-size: invalid size")) << outcome.output;
  }
  for (const std::string size : {"0", "100", "65535"}) {
    const Outcome outcome = run("$TIDEMARK run --max-size " + size + " -- touch started 2>&1");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.output, HasSubstr(size + " is less than the minimum of 64.0 KiB")) << outcome.output;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.at("started")));
  ASSERT_EQ(run("$TIDEMARK run -o run.tide --max-size 64KiB -- $TRAIN >out 2>&1").exit_code, 0);
  EXPECT_LE(std::filesystem::file_size(folder_.at("run.tide")), 65536U);
}

// Without descriptors (except standard ones) there are no signals to wait for, no witness and no recorder.
TEST_F(RunFaults, WithoutDescriptorsTheProgramRuns) {
  for (const int limit : {4, 5, 6, 8, 12}) {
    const Outcome outcome = run("exec 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n " + std::to_string(limit) +
                                "; exec $RECORD sh -c \"echo ran; exit 7\"");
    EXPECT_EQ(outcome.exit_code, 7) << limit;
    EXPECT_THAT(outcome.output, HasSubstr("ran\n")) << limit;
    EXPECT_THAT(outcome.output, ::testing::MatchesRegex("(ran\n)?tidemark: [^\n]*record[^\n]*\n(ran\n)?")) << limit;
  }
}

}  // namespace
}  // namespace tidemark::testing
