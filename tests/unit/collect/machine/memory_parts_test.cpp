// Parts of memory: from files written by hand, and the kernel's own.
#include <gtest/gtest.h>

#include "base/units.h"
#include "collect/machine/host_memory.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

Cgroup group_in(const TemporaryFolder& folder, const char* type, const char* options) {
  const bool unified = std::string(type) == "cgroup2";
  folder.write("proc/self/cgroup", unified ? "0::/job\n" : "4:memory:/job\n");
  folder.write("proc/self/mountinfo", std::string("33 22 0:27 / /cg rw - ") + type + " " + type + " " + options + "\n");
  folder.write("cg/job/cgroup.procs", "");
  return *Cgroup::own(folder.path());
}

TEST(MemoryParts, OfAGroupOfVersion2) {
  const TemporaryFolder folder;
  const Cgroup group = group_in(folder, "cgroup2", "rw");
  folder.write("cg/job/memory.current", "10000\n");
  folder.write("cg/job/memory.max", "20000\n");
  folder.write("cg/job/memory.swap.current", "70\n");
  folder.write("cg/job/memory.stat",
               "anon 4000\nfile 3000\nkernel 900\nkernel_stack 100\npagetables 200\nsock 50\nvmalloc 0\nshmem 1200\n"
               "file_mapped 5\nslab 300\nfile_thp 7\n");
  folder.write("cg/job/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
  const MemoryParts expected{10000, 20000, 4000, 1800, 1200, 900, 50, 70};
  EXPECT_EQ(group.parts(), expected);
  const MemoryEvents events{1, 2, 3, 4, {}};
  EXPECT_EQ(group.events(), events);
  folder.write("cg/job/memory.stat", "anon 4000\nfile 3000\nkernel_stack 100\npagetables 200\nslab 300\nshmem 1200\n");
  EXPECT_EQ(group.parts().kernel_bytes, 600U) << "before Linux 5.18";
}

TEST(MemoryParts, OfAGroupOfVersion1) {
  const TemporaryFolder folder;
  const Cgroup group = group_in(folder, "cgroup", "rw,memory");
  folder.write("cg/job/memory.usage_in_bytes", "10000\n");
  folder.write("cg/job/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("cg/job/memory.kmem.usage_in_bytes", "900\n");
  folder.write("cg/job/memory.failcnt", "12\n");
  folder.write("cg/job/memory.stat",
               "cache 1\nrss 2\nshmem 3\ntotal_cache 3000\ntotal_rss 4000\ntotal_shmem 1200\n"
               "total_swap 70\n");
  folder.write("cg/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 5\n");
  const MemoryParts expected{10000, {}, 4000, 1800, 1200, 900, {}, 70};
  EXPECT_EQ(group.parts(), expected);
  const MemoryEvents events{{}, {}, 12, {}, true};
  EXPECT_EQ(group.events(), events);
}

TEST(MemoryParts, UnknownForGroupWithoutFiles) {
  const TemporaryFolder folder;
  const Cgroup group = group_in(folder, "cgroup2", "rw");
  EXPECT_EQ(group.parts(), MemoryParts());
  EXPECT_EQ(group.events(), MemoryEvents());
}

TEST(MemoryParts, OfTheMachine) {
  const TemporaryFolder folder;
  folder.write("proc/meminfo",
               "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nBuffers: 10 kB\nCached: 300 kB\n"
               "SwapCached: 5 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\nAnonPages: 350 kB\nShmem: 40 kB\nSlab: 60 kB\n"
               "KernelStack: 7 kB\nPageTables: 8 kB\nPercpu: 2 kB\n");
  folder.write("proc/vmstat", "pgfault 9\noom_kill 3\n");
  const MachineReading reading = read_machine_memory(folder.path());
  const MemoryParts expected{900 * kKiB, 1000 * kKiB, 350 * kKiB, 275 * kKiB, 40 * kKiB, 77 * kKiB, {}, 30 * kKiB};
  EXPECT_EQ(reading.parts, expected);
  EXPECT_EQ(reading.available_bytes, 400 * kKiB);
  EXPECT_EQ(reading.oom_kills, 3U);
  EXPECT_EQ(read_machine_memory(folder.at("nowhere")).parts, MemoryParts());
}

TEST(MemoryParts, OfThisMachineAddUpToUsedMemory) {
  const MachineReading reading = read_machine_memory();
  if (!reading.parts.anon_bytes) GTEST_SKIP() << "/proc/meminfo does not say";
  const MemoryParts& parts = reading.parts;
  const std::uint64_t sum =
      *parts.anon_bytes + *parts.cache_bytes + *parts.shmem_bytes + parts.kernel_bytes.value_or(0);
  EXPECT_LT(*parts.used_bytes, *parts.limit_bytes);
  EXPECT_GT(sum, *parts.used_bytes / 4) << "drivers may hold much that no counter has";
  EXPECT_LT(sum, *parts.used_bytes + *parts.used_bytes / 4);
}

}  // namespace
}  // namespace tidemark::testing
