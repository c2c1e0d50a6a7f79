#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/machine/processes.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(ProcessTree, FromTheKernelsLists) {
  const TemporaryFolder folder;
  folder.write("proc/10/task/10/children", "11 12 ");
  folder.write("proc/10/task/15/children", "13 ");
  folder.write("proc/11/task/11/children", "20 ");
  folder.write("proc/20/task/20/children", "");
  EXPECT_THAT(descendants_of(10, folder.path()), ElementsAre(11, 12, 13, 20)) << "12 and 13 have ended since";
  EXPECT_THAT(descendants_of(99, folder.path()), IsEmpty());
}

TEST(ProcessTree, FromParentsWithoutChildLists) {
  const TemporaryFolder folder;
  folder.write("proc/10/stat", "10 (tidemark) S 1 10 10 0");
  folder.write("proc/11/stat", "11 (a) b ) c) S 10 11 11 0");
  folder.write("proc/12/stat", "12 (python) S 11 11 11 0");
  folder.write("proc/13/stat", "13 (python) S 1 11 11 0");
  EXPECT_THAT(descendants_of(10, folder.path()), ElementsAre(11, 12));
}

TEST(ProcessTree, OfThisProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_THAT(descendants_of(::getpid()), UnorderedElementsAre(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(descendants_of(::getpid()), IsEmpty());
}

TEST(ProcessTree, Memory) {
  const TemporaryFolder folder;
  folder.write("proc/10/statm", "5000 300 200 1 0 900 0\n");
  EXPECT_EQ(resident_bytes(10, folder.path()), 300U * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(resident_bytes(11, folder.path()), std::nullopt);
  folder.write("proc/12/statm", "0 0 0 0 0 0 0\n");  // a zombie's
  EXPECT_EQ(resident_bytes(12, folder.path()), std::nullopt);
  EXPECT_GT(resident_bytes(::getpid()).value_or(0), std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace tidemark::testing
