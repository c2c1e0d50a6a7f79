// NCCL of the phantom GPU: ranks in one thread, in several threads and in processes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "phantom/gpu/memory.h"
#include "phantom/libraries/nccl_operations.h"
#include "phantom/libraries/nccl_reduction.h"

namespace tidemark::phantom {

// The buffers of these tests are the host's, so their values are known.
bool is_device_address(const void*) {
  return false;
}

namespace {

// ncclDataType_t
constexpr int kInt64 = 4;
constexpr int kFloat16 = 6;
constexpr int kFloat32 = 7;
constexpr int kBFloat16 = 9;
constexpr int kFloat8 = 10;

std::string unused_name() {
  static int number = 0;
  return "/tidemark-nccl-test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

using Ranks = std::array<NcclCommunicator, 2>;

void join(Ranks& ranks) {
  const std::string name = unused_name();
  for (int rank = 0; rank < 2; ++rank) {
    ranks[static_cast<std::size_t>(rank)].transport = NcclTransport::join(name, rank, 2);
    ASSERT_NE(ranks[static_cast<std::size_t>(rank)].transport, nullptr);
  }
}

template <typename Element>
NcclOperation operation(NcclCommunicator& rank, NcclKind kind, const std::vector<Element>& from,
                        std::vector<Element>& to, std::size_t count, int type) {
  NcclOperation operation;
  operation.communicator = &rank;
  operation.kind = kind;
  operation.from = from.data();
  operation.to = to.data();
  operation.count = count;
  operation.type = type;
  return operation;
}

TEST(NcclTest, RanksOfOneThreadMeetInAGroup) {
  Ranks ranks;
  join(ranks);
  const std::vector<std::int64_t> parts[] = {{1, 20}, {3, 40}};
  std::vector<std::int64_t> sums[] = {{0, 0}, {0, 0}};
  start_group();
  for (std::size_t rank = 0; rank < 2; ++rank)
    ASSERT_EQ(enqueue(operation(ranks[rank], NcclKind::all_reduce, parts[rank], sums[rank], 2, kInt64)), kNcclSuccess);
  ASSERT_EQ(end_group(), kNcclSuccess);
  for (const auto& sum : sums) EXPECT_EQ(sum, (std::vector<std::int64_t>{4, 60}));
}

TEST(NcclTest, CollectivesAndMessagesKeepTheirOrderOverMoreThanThereIsRoomFor) {
  Ranks ranks;
  join(ranks);
  constexpr std::int64_t kTimes = 100;
  const auto work = [&ranks](std::size_t rank) {
    for (std::int64_t time = 0; time < kTimes; ++time) {
      const std::vector<std::int64_t> part = {time * (rank == 0 ? 1 : 1000)};
      std::vector<std::int64_t> result(1);
      EXPECT_EQ(enqueue(operation(ranks[rank], NcclKind::all_reduce, part, result, 1, kInt64)), kNcclSuccess);
      EXPECT_EQ(result[0], time * 1001);
    }
    // Both send everything before either receives.
    std::vector<std::vector<std::int64_t>> sent(kTimes, std::vector<std::int64_t>(1));
    std::vector<std::vector<std::int64_t>> received = sent;
    start_group();
    for (std::int64_t time = 0; time < kTimes; ++time) {
      const auto at = static_cast<std::size_t>(time);
      sent[at][0] = time + static_cast<std::int64_t>(rank) * 1000;
      NcclOperation send = operation(ranks[rank], NcclKind::send, sent[at], sent[at], 1, kInt64);
      send.peer = 1 - static_cast<int>(rank);
      EXPECT_EQ(enqueue(send), kNcclSuccess);
    }
    for (auto& each : received) {
      NcclOperation receive = operation(ranks[rank], NcclKind::receive, each, each, 1, kInt64);
      receive.peer = 1 - static_cast<int>(rank);
      EXPECT_EQ(enqueue(receive), kNcclSuccess);
    }
    EXPECT_EQ(end_group(), kNcclSuccess);
    for (std::int64_t time = 0; time < kTimes; ++time)
      EXPECT_EQ(received[static_cast<std::size_t>(time)][0], time + (rank == 0 ? 1000 : 0));
  };
  std::thread other(work, std::size_t{1});
  work(0);
  other.join();
}

TEST(NcclTest, LargeBuffersAreOnlyDescribed) {
  Ranks ranks;
  join(ranks);
  const std::size_t count = kKeptCopyBytes / sizeof(float) + 1;
  const std::vector<float> part(count, 1);
  std::vector<float> results[] = {std::vector<float>(count, 7), std::vector<float>(count, 7)};
  start_group();
  for (std::size_t rank = 0; rank < 2; ++rank)
    ASSERT_EQ(enqueue(operation(ranks[rank], NcclKind::all_reduce, part, results[rank], count, kFloat32)),
              kNcclSuccess);
  ASSERT_EQ(end_group(), kNcclSuccess);
  EXPECT_EQ(results[0].front(), 7);
}

TEST(NcclTest, DifferentCallsFail) {
  Ranks ranks;
  join(ranks);
  const std::vector<float> part(4);
  std::vector<float> result(4);
  start_group();
  ASSERT_EQ(enqueue(operation(ranks[0], NcclKind::all_reduce, part, result, 3, kFloat32)), kNcclSuccess);
  ASSERT_EQ(enqueue(operation(ranks[1], NcclKind::all_reduce, part, result, 4, kFloat32)), kNcclSuccess);
  testing::internal::CaptureStderr();
  EXPECT_EQ(end_group(), kNcclInvalidUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("rank 1 called ncclAllReduce with 4 elements"),
            std::string::npos);
}

TEST(NcclTest, ARankWhoseProcessHasEndedIsNotWaitedFor) {
  const std::string name = unused_name();
  NcclCommunicator rank;
  rank.transport = NcclTransport::join(name, 0, 2);
  ASSERT_NE(rank.transport, nullptr);
  const pid_t process = fork();
  if (process == 0) _exit(NcclTransport::join(name, 1, 2) != nullptr ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  ASSERT_TRUE(rank.transport->complete());
  const std::vector<float> part(1);
  std::vector<float> result(1);
  EXPECT_EQ(enqueue(operation(rank, NcclKind::all_reduce, part, result, 1, kFloat32)), kNcclRemoteError);
}

TEST(NcclTest, SegmentIsPrivateAndUnlinkedByTheLastToJoin) {
  const std::string path = "/dev/shm";
  const std::string name = unused_name();
  const auto first = NcclTransport::join(name, 0, 2);
  ASSERT_NE(first, nullptr);
  struct stat status {};
  ASSERT_EQ(stat((path + name).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_FALSE(first->complete());
  const auto second = NcclTransport::join(name, 1, 2);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(first->complete());
  EXPECT_NE(stat((path + name).c_str(), &status), 0);
}

TEST(NcclTest, ASegmentThatOthersCouldReadIsRefused) {
  const std::string name = unused_name();
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(fchmod(file, 0666), 0);
  EXPECT_EQ(NcclTransport::join(name, 0, 2), nullptr);
  EXPECT_EQ(errno, EPERM);
  close(file);
  shm_unlink(name.c_str());
}

// Bits as defined by IEEE 754 and its shortened form.
TEST(NcclTest, SixteenBitNumbersAreAddedAndRounded) {
  const auto sum = [](int type, std::uint16_t a, std::uint16_t b) {
    std::uint16_t result = 0;
    const void* parts[] = {&a, &b};
    EXPECT_TRUE(reduce(&result, parts, 2, 1, type, {}));
    return result;
  };
  EXPECT_EQ(sum(kFloat16, 0x3c00, 0x3c00), 0x4000);   // 1 + 1 = 2
  EXPECT_EQ(sum(kFloat16, 0x3c00, 0x0001), 0x3c00);   // 1 + the smallest subnormal
  EXPECT_EQ(sum(kFloat16, 0x0001, 0x0001), 0x0002);   // subnormals
  EXPECT_EQ(sum(kFloat16, 0x03ff, 0x0001), 0x0400);   // into the normal numbers
  EXPECT_EQ(sum(kFloat16, 0x7bff, 0x7bff), 0x7c00);   // 65504 + 65504 is infinity
  EXPECT_EQ(sum(kFloat16, 0x3c00, 0x1400), 0x3c01);   // 1 + 2^-10
  EXPECT_EQ(sum(kFloat16, 0x3c00, 0x1000), 0x3c00);   // 1 + 2^-11: a tie, to even
  EXPECT_EQ(sum(kBFloat16, 0x3f80, 0x3f80), 0x4000);  // 1 + 1
  EXPECT_EQ(sum(kBFloat16, 0x3f80, 0x3b80), 0x3f80);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(sum(kBFloat16, 0x3f80, 0x3c00), 0x3f81);  // 1 + 2^-7
  std::uint8_t small = 0;
  const void* parts[] = {&small};
  EXPECT_FALSE(reduce(&small, parts, 1, 1, kFloat8, {}));
  EXPECT_EQ(element_size(kFloat8), 1U);
  EXPECT_EQ(element_size(12), std::nullopt);
}

}  // namespace
}  // namespace tidemark::phantom
