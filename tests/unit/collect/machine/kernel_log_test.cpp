#include "collect/machine/kernel_log.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

constexpr const char* kGroup =
    "Memory cgroup out of memory: Killed process 4711 (python) total-vm:9000kB, anon-rss:500kB, file-rss:30kB, "
    "shmem-rss:20kB, UID:0 pgtables:120kB oom_score_adj:0";

TEST(KernelLog, KillsInAGroupAndOnTheMachine) {
  const auto group = parse_kill(kGroup);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->pid, 4711);
  EXPECT_EQ(group->scope, KillScope::cgroup);
  EXPECT_EQ(group->pages.anon_bytes, 500 * kKiB);
  EXPECT_EQ(group->pages.file_bytes, 30 * kKiB);
  EXPECT_EQ(group->pages.shmem_bytes, 20 * kKiB);
  EXPECT_EQ(group->pages.rss_bytes, 550 * kKiB);
  const auto machine = parse_kill("Out of memory: Killed process 12 (x) anon-rss:1) total-vm:1kB, anon-rss:2kB");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->scope, KillScope::machine);
  EXPECT_EQ(machine->pages.anon_bytes, 2 * kKiB) << "not what the process called itself";
  EXPECT_EQ(machine->pages.rss_bytes, std::nullopt);
}

TEST(KernelLog, OtherLines) {
  EXPECT_FALSE(parse_kill(""));
  EXPECT_FALSE(parse_kill("oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=4711,uid=0"));
  EXPECT_FALSE(parse_kill("Killed process 12 (x)"));
  EXPECT_FALSE(parse_kill("Out of memory: Killed process 99999999999 (x)"));
  EXPECT_FALSE(parse_kill("Out of memory: Killed process python"));
}

TEST(KernelLog, Missing) {
  const TemporaryFolder folder;
  KernelLog log(folder.path());
  EXPECT_FALSE(log.readable());
  EXPECT_TRUE(log.read().empty());
}

}  // namespace
}  // namespace tidemark::testing
