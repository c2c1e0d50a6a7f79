// Which kills count, read from copies of the kernel's files.
#include <gtest/gtest.h>

#include "plan/planned_job.h"
#include "temporary_folder.h"

namespace tidemark {
namespace {

using testing::TemporaryFolder;

TEST(OomKillsTest, AreThoseOfTheOwnControlGroup) {
  const TemporaryFolder machine;
  machine.write("proc/vmstat", "nr_free_pages 100\noom_kill 7\n");
  machine.write("proc/self/cgroup", "0::/job/step\n");
  machine.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  machine.write("sys/fs/cgroup/job/memory.max", "1000\n");  // the lowest limit, of all steps
  machine.write("sys/fs/cgroup/job/memory.events", "low 0\noom 9\noom_kill 9\n");
  machine.write("sys/fs/cgroup/job/step/memory.events", "low 0\noom 2\noom_kill 2\n");
  const OomKills kills(machine.path());
  EXPECT_TRUE(kills.counts_own_group());
  EXPECT_EQ(kills.count(), 0U);
  machine.write("proc/vmstat", "nr_free_pages 100\noom_kill 8\n");
  machine.write("sys/fs/cgroup/job/memory.events", "low 0\noom 10\noom_kill 10\n");
  EXPECT_EQ(kills.count(), 0U);  // kills of another group
  machine.write("sys/fs/cgroup/job/step/memory.events", "low 0\noom 3\noom_kill 3\n");
  EXPECT_EQ(kills.count(), 1U);
}

TEST(OomKillsTest, AreThoseOfTheMachineWhereTheGroupDoesNotCount) {
  const TemporaryFolder machine;
  machine.write("proc/vmstat", "oom_kill 7\n");
  machine.write("proc/self/cgroup", "0::/\n");
  machine.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  machine.write("sys/fs/cgroup/cgroup.procs", "");  // the root group has no memory.events
  const OomKills kills(machine.path());
  EXPECT_FALSE(kills.counts_own_group());
  machine.write("proc/vmstat", "oom_kill 9\n");
  EXPECT_EQ(kills.count(), 2U);
}

}  // namespace
}  // namespace tidemark
