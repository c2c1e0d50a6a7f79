#include "collect/machine/host_memory.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

TEST(HostMemory, FromMeminfo) {
  const TemporaryFolder folder;
  folder.write("proc/meminfo", "MemTotal:       2048 kB\nMemFree:         1 kB\nMemAvailable:   1024 kB\n");
  const HostMemory host = read_host_memory(folder.path());
  EXPECT_EQ(host.total_bytes, 2048U * 1024);
  EXPECT_EQ(host.available_bytes, 1024U * 1024);
  EXPECT_EQ(read_host_memory(folder.at("nowhere")).total_bytes, std::nullopt);
}

TEST(Cgroup, Version2TakesTheLowestLimitOnTheWayUp) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/user/job/step\n");
  folder.write("proc/self/mountinfo",
               "22 1 0:5 / /proc rw - proc proc rw\n33 22 0:27 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  folder.write("cg/user/memory.max", "max\n");
  folder.write("cg/user/job/memory.max", "1073741824\n");
  folder.write("cg/user/job/memory.current", "536870912\n");
  folder.write("cg/user/job/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n");
  folder.write("cg/user/job/step/memory.max", "2147483648\n");
  folder.write("cg/user/job/step/memory.current", "7\n");
  const auto cgroup = Cgroup::of_this_process(folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->version(), 2);
  EXPECT_EQ(cgroup->folder(), folder.at("cg/user/job"));
  EXPECT_EQ(cgroup->limit_bytes(), kGiB);
  EXPECT_EQ(cgroup->read().usage_bytes, kGiB / 2);
  EXPECT_EQ(cgroup->read().oom_kills, 2U);
}

TEST(Cgroup, Version1WithItsNumberForNoLimit) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n");
  folder.write(
      "proc/self/mountinfo",
      "31 1 0:8 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n32 1 0:9 / /cg/memory rw - cgroup cgroup rw,memory\n"
      "33 1 0:27 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("cg/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("cg/memory/a/b/memory.usage_in_bytes", "4096\n");
  folder.write("cg/memory/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  const auto cgroup = Cgroup::of_this_process(folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->version(), 1);
  EXPECT_EQ(cgroup->folder(), folder.at("cg/memory/a/b")) << "its own, where none has a limit";
  EXPECT_EQ(cgroup->limit_bytes(), std::nullopt);
  EXPECT_EQ(cgroup->read().usage_bytes, 4096U);
  EXPECT_EQ(cgroup->read().oom_kills, 5U);
}

TEST(Cgroup, ContainerThatSeesOnlyItsOwnGroup) {
  const TemporaryFolder folder;
  folder.write("proc/self/mountinfo", "33 22 0:27 /docker/1f2e /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/memory.max", "1073741824\n");
  folder.write("cg/worker/memory.max", "max\n");
  folder.write("cg/worker/memory.current", "5\n");
  folder.write("proc/self/cgroup", "0::/docker/1f2e\n");
  EXPECT_EQ(Cgroup::of_this_process(folder.path())->folder(), folder.at("cg"));
  folder.write("proc/self/cgroup", "0::/docker/1f2e/worker\n");
  EXPECT_EQ(Cgroup::of_this_process(folder.path())->folder(), folder.at("cg")) << "the limit is above";
  folder.write("proc/self/cgroup", "0::/docker/1f2e77\n");
  EXPECT_EQ(Cgroup::of_this_process(folder.path())->folder(), folder.at("cg")) << "another group of a similar name";
}

// From the host, where all groups are mounted.
TEST(Cgroup, OfAProcessInAContainer) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/user.slice\n");
  folder.write("proc/self/mountinfo", "33 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/user.slice/memory.max", "max\n");
  folder.write("proc/42/cgroup", "0::/system.slice/docker-1f2e.scope/worker\n");
  folder.write("cg/system.slice/memory.max", "max\n");
  folder.write("cg/system.slice/docker-1f2e.scope/memory.max", "1073741824\n");
  folder.write("cg/system.slice/docker-1f2e.scope/memory.current", "4096\n");
  folder.write("cg/system.slice/docker-1f2e.scope/worker/memory.max", "max\n");
  const auto cgroup = Cgroup::of_process(42, folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->folder(), folder.at("cg/system.slice/docker-1f2e.scope"));
  EXPECT_EQ(cgroup->limit_bytes(), kGiB);
  EXPECT_EQ(cgroup->read().usage_bytes, 4096U);
  EXPECT_FALSE(Cgroup::of_process(43, folder.path())) << "it has ended";
  folder.write("proc/42/cgroup", "0::/system.slice/gone.scope (deleted)\n");
  EXPECT_FALSE(Cgroup::of_process(42, folder.path()));
}

TEST(Cgroup, OfAProcessWithVersion1) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "4:memory:/\n0::/\n");
  folder.write("proc/self/mountinfo",
               "32 1 0:9 / /cg/memory rw - cgroup cgroup rw,memory\n33 1 0:27 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  folder.write("proc/42/cgroup", "5:cpu:/else\n4:memory:/slurm/job_7/step_0\n0::/else\n");
  folder.write("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("cg/memory/slurm/job_7/memory.limit_in_bytes", "1073741824\n");
  folder.write("cg/memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
  const auto cgroup = Cgroup::of_process(42, folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->version(), 1);
  EXPECT_EQ(cgroup->folder(), folder.at("cg/memory/slurm/job_7"));
}

// In a container the kernel writes paths outside of its namespace as "/..".
TEST(Cgroup, GroupsOutsideOfTheContainerAreNotSeen) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/\n");
  folder.write("proc/self/mountinfo", "33 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/memory.max", "1073741824\n");
  folder.write("other/memory.max", "4096\n");
  folder.write("proc/42/cgroup", "0::/../other\n");
  EXPECT_FALSE(Cgroup::of_process(42, folder.path()));
  folder.write("proc/42/cgroup", "0::/worker\n");
  folder.write("cg/worker/memory.max", "max\n");
  EXPECT_EQ(Cgroup::of_process(42, folder.path())->folder(), folder.at("cg")) << "the limit is above";
  // Without a namespace of its own, but with one part of the hierarchy mounted.
  folder.write("proc/self/mountinfo", "33 22 0:27 /docker/1f2e /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("proc/42/cgroup", "0::/docker/77\n");
  EXPECT_FALSE(Cgroup::of_process(42, folder.path()));
}

// A container with the host's whole hierarchy mounted.
TEST(Cgroup, HierarchyOfTheHostInAContainer) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/\n");
  folder.write("proc/self/mountinfo",
               "33 22 0:27 / /own rw - cgroup2 cgroup2 rw\n34 22 0:27 /../.. /host rw - cgroup2 cgroup2 rw\n");
  folder.write("own/memory.max", "max\n");
  folder.write("host/system.slice/job/memory.max", "1073741824\n");
  folder.write("proc/42/cgroup", "0::/../../system.slice/job\n");
  const auto cgroup = Cgroup::of_process(42, folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->folder(), folder.at("host/system.slice/job"));
  EXPECT_EQ(Cgroup::of_this_process(folder.path())->folder(), folder.at("own"));
  folder.write("proc/42/cgroup", "0::/../../../above\n");
  EXPECT_FALSE(Cgroup::of_process(42, folder.path()));
}

TEST(Cgroup, NoControlGroups) {
  const TemporaryFolder folder;
  EXPECT_FALSE(Cgroup::of_this_process(folder.path()));
  folder.write("proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(Cgroup::of_this_process(folder.path())) << "not mounted";
}

// `unshare --cgroup` alone: the mount is older, and shows the groups above.
TEST(Cgroup, HierarchyFromBeforeTheNamespace) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/\n");
  folder.write("proc/self/mountinfo", "34 22 0:27 /../.. /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/memory.max", "1073741824\n");
  EXPECT_FALSE(Cgroup::of_this_process(folder.path()));
}

TEST(Cgroup, GroupWithoutFilesIsUnknown) {
  const TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/\n");
  folder.write("proc/self/mountinfo", "33 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
  folder.write("cg/cgroup.procs", "1\n");
  const auto cgroup = Cgroup::of_this_process(folder.path());
  ASSERT_TRUE(cgroup);
  EXPECT_EQ(cgroup->limit_bytes(), std::nullopt);
  EXPECT_EQ(cgroup->read().usage_bytes, std::nullopt) << "the root group of version 2 has no memory.current";
  EXPECT_EQ(cgroup->read().oom_kills, std::nullopt);
}

}  // namespace
}  // namespace tidemark::testing
