#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "collect/machine/processes.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

namespace fs = std::filesystem;

SampledProcess named(std::int64_t pid, const std::string& root = "") {
  SampledProcess process;
  process.pid = pid;
  name_process(process, root);
  return process;
}

/// A /proc with processes 10 (has a GPU open), 11 (has not) and 12 (a kernel thread).
class FakeProc {
 public:
  explicit FakeProc(const char* pid_namespace) {
    folder_.write("proc/self/ns/x", "");
    fs::create_symlink(pid_namespace, folder_.at("proc/self/ns/pid"));
    add("10", std::string("/usr/bin/python3\0-u\0/home/me/train.py\0--token\0secret\0", 53));
    fs::create_symlink("/dev/nvidia0", folder_.at("proc/10/fd/5"));
    add("11", std::string("bash\0", 5));
    add("12", "");
    folder_.write("proc/12/comm", "kworker/0:1\n");
  }
  [[nodiscard]] const std::string& root() const { return folder_.path(); }
  void add(const std::string& pid, const std::string& command_line) {
    folder_.write("proc/" + pid + "/cmdline", command_line);
    folder_.write("proc/" + pid + "/fd/x", "");
    fs::create_symlink("/dev/null", folder_.at("proc/" + pid + "/fd/0"));
  }

 private:
  TemporaryFolder folder_;
};

TEST(ProcessNames, OnTheHost) {
  const FakeProc proc("pid:[4026531836]");
  EXPECT_EQ(named(10, proc.root()).name, "python3 train.py");
  EXPECT_EQ(named(11, proc.root()).name, "bash");
  EXPECT_EQ(named(12, proc.root()).name, "kworker/0:1");
  EXPECT_EQ(named(13, proc.root()).kind, ProcessKind::ended);
}

TEST(ProcessNames, InAContainerOnlyProcessesWithOpenGpu) {
  const FakeProc proc("pid:[4026532000]");
  EXPECT_EQ(named(10, proc.root()).name, "python3 train.py");
  EXPECT_EQ(named(11, proc.root()).kind, ProcessKind::other_namespace) << "the host's 11 is not the 11 here";
  EXPECT_EQ(named(11, proc.root()).name, "");
  EXPECT_EQ(named(13, proc.root()).kind, ProcessKind::other_namespace);
}

TEST(ProcessNames, ShortCommands) {
  FakeProc proc("pid:[4026531836]");
  proc.add("20", std::string("python\0-m\0torch.distributed.run\0x\0", 34));
  proc.add("21", std::string("/opt/bin/python3.11\0-c\0import os\0", 33));
  proc.add("22", std::string("python\0", 7));
  proc.add("23", std::string("/usr/lib/xorg/Xorg\0:0\0", 22));
  EXPECT_EQ(short_command(20, proc.root()), "python -m torch.distributed.run");
  EXPECT_EQ(short_command(21, proc.root()), "python3.11 -c");
  EXPECT_EQ(short_command(22, proc.root()), "python");
  EXPECT_EQ(short_command(23, proc.root()), "Xorg");
  EXPECT_EQ(short_command(99, proc.root()), "");
}

TEST(ProcessNames, ThisProcess) {
  EXPECT_EQ(short_command(::getpid()), "machine_test");
}

}  // namespace
}  // namespace tidemark::testing
