// The memory of a process: from files written by hand, and of this process, compared with its own allocations.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "collect/machine/processes.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

TEST(ProcessMemory, FromItsStatus) {
  const TemporaryFolder folder;
  folder.write("proc/10/status",
               "Name:\tRssAnon:  9\nVmLck:\t    16 kB\nVmPin:\t       8 kB\nVmHWM:\t  999 kB\nVmRSS:\t     600 kB\n"
               "RssAnon:\t     300 kB\nRssFile:\t     200 kB\nRssShmem:\t     100 kB\nVmSwap:\t      50 kB\n");
  const ProcessPages expected{600 * kKiB, 300 * kKiB, 200 * kKiB, 100 * kKiB, 50 * kKiB, 16 * kKiB, 8 * kKiB};
  EXPECT_EQ(resident_pages(10, folder.path()), expected);
  EXPECT_EQ(resident_pages(11, folder.path()), ProcessPages());
  folder.write("proc/12/status", "Name:\tpython\nState:\tZ (zombie)\n");
  EXPECT_EQ(resident_pages(12, folder.path()), ProcessPages());
}

TEST(ProcessMemory, FromItsMappings) {
  const TemporaryFolder folder;
  folder.write("proc/10/smaps_rollup",
               "0-1 ---p 00000000 00:00 0   [rollup]\nRss:  1200 kB\nPss:   700 kB\n"
               "Pss_Dirty: 5 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty:   400 kB\n");
  EXPECT_EQ(walked_pages(10, folder.path()).pss_bytes, 700 * kKiB);
  EXPECT_EQ(walked_pages(10, folder.path()).private_bytes, 400 * kKiB);
  EXPECT_EQ(walked_pages(11, folder.path()).pss_bytes, std::nullopt);
}

TEST(ProcessMemory, GrowsWithTouchedPages) {
  const ProcessPages before = resident_pages(::getpid());
  if (!before.anon_bytes) GTEST_SKIP() << "/proc/self/status does not say";
  constexpr std::size_t kBytes = 64 * kMiB;
  // The kernel counts pages separately for each thread or processor and sums them only now and then.
  constexpr std::uint64_t kTolerance = 2 * kMiB;
  // The kernel fills them: ThreadSanitizer's memory for each write would count as well.
  void* const anon = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  void* const shared =
      ::mmap(nullptr, kBytes / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(anon, MAP_FAILED);
  ASSERT_NE(shared, MAP_FAILED);
  const ProcessPages after = resident_pages(::getpid());
  EXPECT_NEAR(static_cast<double>(*after.anon_bytes - *before.anon_bytes), kBytes, kTolerance);
  EXPECT_NEAR(static_cast<double>(*after.shmem_bytes - *before.shmem_bytes), kBytes / 2, kTolerance);
  EXPECT_EQ(*after.rss_bytes, *after.anon_bytes + *after.file_bytes + *after.shmem_bytes);
  ::munmap(anon, kBytes);
  ::munmap(shared, kBytes / 2);
}

}  // namespace
}  // namespace tidemark::testing
