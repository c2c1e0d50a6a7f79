// Processes killed for lack of memory, from counts and logs written by hand.
#include "collect/recorder/oom_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/units.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

class OomWatchTest : public ::testing::Test {
 protected:
  OomWatchTest() {
    folder_.write("proc/self/cgroup", "0::/job\n");
    folder_.write("proc/self/mountinfo", "33 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
    folder_.write("cg/job/memory.max", "1000\n");
    count(5, 9);
  }
  void count(int in_group, int on_machine) {
    folder_.write("cg/job/memory.events", "oom_kill " + std::to_string(in_group) + "\n");
    folder_.write("proc/vmstat", "oom_kill " + std::to_string(on_machine) + "\n");
  }
  static Reading host(const std::vector<std::int64_t>& pids, std::uint64_t usage = 950, std::uint64_t ticks = 0) {
    HostReading reading;
    reading.sample.cgroup_usage_bytes = usage;
    reading.sample.cgroup_limit_bytes = 1000;
    for (const std::int64_t pid : pids) {
      ProcessMemory& memory = reading.processes.emplace_back();
      memory.pid = pid;
      memory.pages.rss_bytes = static_cast<std::uint64_t>(pid) * 10;
    }
    Reading made;
    made.ticks = ticks;
    made.what = std::move(reading);
    return made;
  }

  TemporaryFolder folder_;
};

TEST_F(OomWatchTest, SigkillWithRisenCount) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  Reading parts;
  HostPartsSample sample;
  sample.processes.push_back({20, 10, ProcessRole::data_worker, false, 1, 2, {}, {}, {}, "python train.py"});
  parts.what = sample;
  EXPECT_TRUE(watch.take(parts).empty());
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  count(6, 10);
  const auto killed = watch.ended(20, SIGKILL, 1);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->evidence, KillEvidence::exit_signal);
  EXPECT_EQ(killed->scope, KillScope::cgroup);
  EXPECT_EQ(killed->process.role, ProcessRole::data_worker);
  EXPECT_EQ(killed->process.number, 1U);
  EXPECT_EQ(killed->process.pages.rss_bytes, 200U) << "of the latest reading";
  EXPECT_EQ(killed->cgroup_usage_bytes, 950U);
  EXPECT_EQ(killed->cgroup_limit_bytes, 1000U);
  EXPECT_FALSE(watch.ended(20, SIGKILL, 1)) << "once";
  EXPECT_TRUE(watch.take(host({10, 20})).empty()) << "read before it ended";
  EXPECT_FALSE(watch.ended(10, SIGKILL, 1)) << "there was one kill";
}

// The machine's count includes all control groups, and a user may kill a process meanwhile.
TEST_F(OomWatchTest, KillsOfOtherGroupsAreNotOfAMachineThatHasMemory) {
  folder_.write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:  9000000 kB\n");
  for (const std::uint64_t available_gib : {9U, 1U}) {
    count(5, 9);
    OomWatch watch(folder_.path());
    Reading reading = host({10, 20});
    std::get<HostReading>(reading.what).sample.machine_available_bytes = available_gib * kGiB;
    EXPECT_TRUE(watch.take(reading).empty());
    count(5, 10);
    EXPECT_EQ(watch.ended(20, SIGKILL, 1).has_value(), available_gib == 1);
  }
}

TEST_F(OomWatchTest, NoVictimWithoutACount) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20, 30})).empty());
  EXPECT_FALSE(watch.ended(10, SIGKILL, 1)) << "somebody else sent it";
  count(6, 10);
  EXPECT_FALSE(watch.ended(20, 0, 1)) << "it exited";
  EXPECT_FALSE(watch.ended(30, SIGSEGV, 1));
}

TEST_F(OomWatchTest, GoneProcessWithRisenCount) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20, 30}, 500)).empty());
  count(6, 10);
  const auto killed = watch.take(host({30}, 500));
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].process.pid, 20) << "the one that held more";
  EXPECT_EQ(killed[0].evidence, KillEvidence::vanished);
  EXPECT_EQ(killed[0].scope, KillScope::unknown) << "the limit was far";
}

TEST_F(OomWatchTest, ZombieHasItsSignal) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  count(6, 10);
  folder_.write("proc/20/stat", "20 (py) thon) Z 10 1 2 3 0\n");  // exited
  folder_.write("proc/10/stat", "10 (python) Z 1 1 2 3 9\n");
  const auto killed = watch.take(host({}));
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].process.pid, 10);
  EXPECT_EQ(killed[0].evidence, KillEvidence::exit_signal);
}

TEST_F(OomWatchTest, WithoutACgroupTheMachinesCountIsNotEnoughWithoutASignal) {
  folder_.write("proc/self/cgroup", "");
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  count(5, 10);
  EXPECT_FALSE(watch.ended(10, std::nullopt, 1)) << "any program of the machine may have been killed";
  EXPECT_TRUE(watch.ended(20, SIGKILL, 1));
}

TEST_F(OomWatchTest, MemoryFromBeforeItWasFreed) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({20}, 950)).empty());
  Reading late = host({20}, 300);
  std::get<HostReading>(late.what).processes[0].pages.rss_bytes = 7;  // the kernel is taking its memory back
  EXPECT_TRUE(watch.take(late).empty());
  count(6, 10);
  const auto killed = watch.ended(20, SIGKILL, 1);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->process.pages.rss_bytes, 200U);
  EXPECT_EQ(killed->cgroup_usage_bytes, 950U);
  EXPECT_EQ(killed->scope, KillScope::cgroup);
}

TEST_F(OomWatchTest, VictimsSinceTheLatestReading) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20, 30})).empty());
  folder_.write("proc/10/stat", "10 (sh) S 1 1 2 3 0\n");
  folder_.write("proc/30/stat", "30 (python) Z 1 1 2 3 9\n");
  EXPECT_TRUE(watch.program_ended().empty()) << "nothing was counted";
  EXPECT_EQ(watch.unexplained(), 0U);
  EXPECT_TRUE(watch.take(host({10, 40})).empty());
  count(7, 11);
  const auto killed = watch.program_ended();
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].process.pid, 40);
  EXPECT_EQ(watch.unexplained(), 1U) << "of the two that were counted";
}

TEST_F(OomWatchTest, AProcessThatIsReadLaterHasNotEnded) {
  OomWatch watch(folder_.path());
  EXPECT_TRUE(watch.take(host({10, 20}, 950, 5)).empty());
  EXPECT_FALSE(watch.ended(20, 0, 10));
  EXPECT_TRUE(watch.take(host({10, 20}, 950, 10)).empty());
  EXPECT_TRUE(watch.take(host({10}, 950, 11)).empty()) << "20 was read before it ended: it is not gone now";
  EXPECT_TRUE(watch.take(host({10, 20}, 950, 12)).empty()) << "another process";
  count(6, 10);
  const auto killed = watch.take(host({10}, 950, 13));
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].process.pid, 20);
  EXPECT_EQ(killed[0].process.pages.rss_bytes, 200U);
}

TEST_F(OomWatchTest, AProcessThatBeginsHasNotEnded) {
  OomWatch watch(folder_.path());
  EXPECT_FALSE(watch.ended(20, SIGKILL, 10));
  count(6, 10);
  EXPECT_FALSE(watch.ended(20, SIGKILL, 11)) << "asked for before";
  watch.began(20);
  EXPECT_TRUE(watch.ended(20, SIGKILL, 12));
}

class OomWatchLogTest : public OomWatchTest {
 protected:
  OomWatchLogTest() {
    std::filesystem::create_directories(folder_.at("proc/self/ns"));
    std::filesystem::create_symlink("pid:[4026531836]", folder_.at("proc/self/ns/pid"));
    folder_.write("dev/kmsg", "");
  }
  /// A line that appears after the next reading of the earlier ones.
  void log(int pid) const {
    std::ofstream(folder_.at("dev/kmsg"), std::ios::app)
        << "3,1,1,-;Out of memory: Killed process " << pid << " (python) anon-rss:3kB, file-rss:2kB, shmem-rss:1kB\n";
  }

  OomWatch::Clock::time_point now_;
  std::function<OomWatch::Clock::time_point()> clock_ = [this] { return now_; };
};

TEST_F(OomWatchLogTest, NamesTheVictim) {
  OomWatch watch(folder_.path(), clock_);
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  log(10);
  const auto killed = watch.ended(10, SIGKILL, 1);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->evidence, KillEvidence::kernel_log);
  EXPECT_EQ(killed->scope, KillScope::machine);
  EXPECT_EQ(killed->process.pages.rss_bytes, 6 * kKiB);
  log(20);
  EXPECT_TRUE(watch.ended(20, std::nullopt, 1)) << "nobody can say how it ended";
}

TEST_F(OomWatchLogTest, OtherExitIsNoVictim) {
  OomWatch watch(folder_.path(), clock_);
  log(10);
  EXPECT_FALSE(watch.ended(10, 0, 1)) << "it exited";
  watch.began(10);
  EXPECT_FALSE(watch.ended(10, SIGKILL, 2)) << "what was logged was another";
  log(20);
  EXPECT_FALSE(watch.ended(20, SIGSEGV, 3));
}

TEST_F(OomWatchLogTest, OldLogLinesBelongToAnotherProcess) {
  OomWatch watch(folder_.path(), clock_);
  log(10);
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  now_ += std::chrono::seconds(30);
  log(20);
  EXPECT_TRUE(watch.take(host({10, 20})).empty());
  now_ += std::chrono::seconds(1);
  EXPECT_FALSE(watch.ended(10, SIGKILL, 1));
  EXPECT_TRUE(watch.ended(20, SIGKILL, 1));
}

TEST_F(OomWatchTest, OldCountsBelongToAnotherProcess) {
  OomWatch::Clock::time_point now;
  OomWatch watch(folder_.path(), [&] { return now; });
  count(6, 10);
  Reading reading = host({10, 20, 30});
  std::get<HostReading>(reading.what).sample.cgroup_oom_kills = 6;
  EXPECT_TRUE(watch.take(reading).empty());
  HostPartsSample parts;
  parts.machine_oom_kills = 10;
  reading.what = parts;
  EXPECT_TRUE(watch.take(reading).empty());
  now += std::chrono::seconds(31);
  EXPECT_FALSE(watch.ended(10, SIGKILL, 1));
  count(7, 11);
  EXPECT_TRUE(watch.ended(20, SIGKILL, 1));
  EXPECT_FALSE(watch.ended(30, SIGKILL, 1)) << "each kill counts once";
}

TEST_F(OomWatchTest, WithoutReadings) {
  OomWatch watch(folder_.path());
  EXPECT_EQ(watch.cgroup(), folder_.path() + "/cg/job");
  count(6, 10);
  const auto killed = watch.ended(10, SIGKILL, 1);
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->cgroup_limit_bytes, 1000U);
  EXPECT_EQ(killed->cgroup_usage_bytes, std::nullopt);
  EXPECT_EQ(killed->process.pages.rss_bytes, std::nullopt);
  EXPECT_EQ(killed->scope, KillScope::unknown);
}

TEST(EndingSignal, OfAChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(ending_signal(child, -1), std::nullopt) << "it has not ended";
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  const auto signal = ending_signal(child, -1);
  EXPECT_TRUE(!signal || *signal == SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto later = ending_signal(child, pidfd);  // Linux 6.15 keeps it
  EXPECT_TRUE(!later || *later == SIGKILL);
  ::close(pidfd);
}

}  // namespace
}  // namespace tidemark::testing
