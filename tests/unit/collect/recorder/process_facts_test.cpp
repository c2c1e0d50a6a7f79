#include "collect/recorder/process_facts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

TEST(ProcessFacts, CommandLineOfAnotherProcess) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execlp("sleep", "sleep", "30", "0.5", nullptr);
    ::_exit(127);
  }
  ASSERT_GT(pid, 0);
  std::string line;
  for (int attempt = 0; attempt < 6000 && line.rfind("sleep", 0) != 0; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    line = command_line(pid);
  }
  EXPECT_EQ(line, "sleep 30 0.5");
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(command_line(pid), "") << "gone";
}

TEST(ProcessFacts, AProcessMayEndMeanwhile) {
  for (int count = 0; count < 600; ++count) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    ASSERT_GT(pid, 0);
    std::thread reaper([pid] { ::waitpid(pid, nullptr, 0); });
    for (int look = 0; look < 60; ++look) EXPECT_NO_THROW((void)command_line(pid));
    reaper.join();
  }
}

TEST(ProcessFacts, Hostname) {
  utsname facts{};
  ASSERT_EQ(::uname(&facts), 0);
  EXPECT_EQ(hostname(), facts.nodename);
}

TEST(ProcessFacts, TorchVersionFromTheWheel) {
  const TemporaryFolder folder;
  folder.write("torch/version.py",
               "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda']\n"
               "__version__ = '2.15.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n");
  EXPECT_EQ(torch_version(folder.write("torch/lib/libc10.so", "")), "2.15.0+cu130");
  EXPECT_EQ(torch_version(folder.write("torch/lib/libc10.so.9", "")), "2.15.0+cu130");
}

TEST(ProcessFacts, TorchVersionFromTheLibrarysName) {
  const TemporaryFolder folder;
  const std::string library = folder.write("usr/lib/libc10.so.1.13", "");
  EXPECT_EQ(torch_version(library), "1.13");
  std::filesystem::create_symlink("libc10.so.1.13", folder.at("usr/lib/libc10.so"));
  EXPECT_EQ(torch_version(folder.at("usr/lib/libc10.so")), "1.13");
}

TEST(ProcessFacts, UnknownTorchVersion) {
  const TemporaryFolder folder;
  EXPECT_EQ(torch_version(folder.write("lib/libc10.so", "")), "");
  EXPECT_EQ(torch_version(folder.at("nowhere/lib/libc10.so")), "");
  EXPECT_EQ(torch_version(""), "");
  folder.write("odd/version.py", "__version__ = get_version()\n");
  EXPECT_EQ(torch_version(folder.write("odd/lib/libc10.so", "")), "");
}

}  // namespace
}  // namespace tidemark::testing
