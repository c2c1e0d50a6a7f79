// Communicators of NCCL, created like in PyTorch.
#include <gtest/gtest.h>

#include <thread>

extern "C" {
struct NcclUniqueId {
  char text[128];
};
int ncclGetUniqueId(NcclUniqueId* id);
int ncclCommInitRank(void** communicator, int size, NcclUniqueId id, int rank);
int ncclCommShrink(void* communicator, int* excluded, int count, void** shrunk, void* config, int flags);
int ncclCommCount(void* communicator, int* count);
int ncclCommUserRank(void* communicator, int* rank);
int ncclCommDestroy(void* communicator);
}

namespace tidemark::phantom {
namespace {

TEST(Communicators, RanksThatAreLeftMakeASmallerOne) {
  NcclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), 0);
  const auto run = [&id](int rank) {
    void* communicator = nullptr;
    ASSERT_EQ(ncclCommInitRank(&communicator, 3, id, rank), 0);
    int excluded = 1;
    void* shrunk = nullptr;
    EXPECT_EQ(ncclCommShrink(communicator, &excluded, 1, &shrunk, nullptr, 0) == 0, rank != 1);
    if (rank != 1) {
      int count = 0;
      int place = -1;
      EXPECT_EQ(ncclCommCount(shrunk, &count), 0);
      EXPECT_EQ(ncclCommUserRank(shrunk, &place), 0);
      EXPECT_EQ(count, 2);
      EXPECT_EQ(place, rank / 2);
      EXPECT_EQ(ncclCommDestroy(shrunk), 0);
    }
    EXPECT_EQ(ncclCommDestroy(communicator), 0);
  };
  std::thread first(run, 0);
  std::thread second(run, 1);
  run(2);
  first.join();
  second.join();
}

}  // namespace
}  // namespace tidemark::phantom
