// Communicators of NCCL, created like in PyTorch.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "phantom/gpu/known_bytes.h"

extern "C" {
int cudaMalloc(void** pointer, std::size_t bytes);
int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int cudaFree(void* pointer);
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, void* communicator,
                  void* stream);
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

// What one rank does not know, no rank knows of the sum.
TEST(Communicators, AnUnknownPartMakesAnUnknownResult) {
  constexpr int kToDevice = 1;
  constexpr int kToHost = 2;
  constexpr int kInt64 = 4;
  constexpr int kSum = 0;
  NcclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), 0);
  const auto run = [&id](int rank) {
    void* communicator = nullptr;
    ASSERT_EQ(ncclCommInitRank(&communicator, 2, id, rank), 0);
    void* value = nullptr;
    ASSERT_EQ(cudaMalloc(&value, sizeof(std::int64_t)), 0);
    for (const bool all_known : {true, false}) {
      const std::int64_t own = rank == 0 ? 5 : 7;
      ASSERT_EQ(cudaMemcpy(value, &own, sizeof own, kToDevice), 0);
      if (!all_known && rank == 1) known_bytes().forget(value, sizeof own);
      EXPECT_EQ(ncclAllReduce(value, value, 1, kInt64, kSum, communicator, nullptr), 0);
      std::int64_t sum = -1;
      EXPECT_EQ(known_bytes().knows(value, sizeof sum), all_known);
      EXPECT_EQ(cudaMemcpy(&sum, value, sizeof sum, kToHost), 0);
      EXPECT_EQ(sum, all_known ? 12 : 0);
    }
    EXPECT_EQ(cudaFree(value), 0);
    EXPECT_EQ(ncclCommDestroy(communicator), 0);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

}  // namespace
}  // namespace tidemark::phantom
