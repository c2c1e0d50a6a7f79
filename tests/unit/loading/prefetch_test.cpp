// Prefetching: order and bounds of reading ahead, and the right bytes on a device while chunks and buffers are reused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/worker.h"
#include "loading/batch_pipeline.h"
#include "loading/host_to_device.h"
#include "loading/read_ahead.h"
#include "unit/loading/asynchronous_driver.h"

namespace tidemark {
namespace {

using test::AsynchronousDriver;
using ::testing::HasSubstr;

TEST(ReadAheadTest, HandsOutInOrder) {
  ReadAhead<std::size_t> ahead(
      [](std::size_t number) { return number < 500 ? std::optional(number * 3) : std::nullopt; }, 4, 3);
  for (std::size_t number = 0; number < 500; ++number) ASSERT_EQ(ahead.next(), number * 3);
  EXPECT_EQ(ahead.next(), std::nullopt);
  EXPECT_EQ(ahead.next(), std::nullopt);
  EXPECT_EQ(ahead.times().items, 500u);
}

TEST(ReadAheadTest, MakesNoMoreThanAskedFor) {
  std::atomic<std::size_t> begun = 0;
  ReadAhead<std::size_t> ahead(
      [&](std::size_t number) {
        ++begun;
        return std::optional(number);
      },
      3, 2);
  for (std::size_t taken = 1; taken <= 100; ++taken) {
    ASSERT_TRUE(ahead.next());
    ASSERT_LE(begun, taken + 3);
  }
}

TEST(ReadAheadTest, AnExceptionComesInItsPlace) {
  ReadAhead<int> ahead(
      [](std::size_t number) -> std::optional<int> {
        if (number == 5) throw std::runtime_error("batch 5");
        return static_cast<int>(number);
      },
      8, 3);
  for (int number = 0; number < 5; ++number) ASSERT_EQ(ahead.next(), number);
  EXPECT_THROW(ahead.next(), std::runtime_error);
  EXPECT_EQ(ahead.next(), std::nullopt);
}

TEST(ReadAheadTest, StopReturnsWhatWasNotTaken) {
  ReadAhead<std::unique_ptr<int>> ahead(
      [](std::size_t number) { return std::optional(std::make_unique<int>(static_cast<int>(number))); }, 2, 1);
  EXPECT_EQ(**ahead.next(), 0);
  for (const auto& left : ahead.stop()) EXPECT_GE(*left, 1);
  EXPECT_EQ(ahead.next(), std::nullopt);
}

std::vector<std::vector<std::size_t>> sizes_of(const std::vector<ChunkLoad>& loads) {
  std::vector<std::vector<std::size_t>> sizes;
  for (const ChunkLoad& load : loads) {
    sizes.emplace_back();
    for (const HostArrayCopy& copy : load.copies) sizes.back().push_back(copy.bytes);
  }
  return sizes;
}

TEST(LoadListTest, SmallArraysShareAChunkAndLargeOnesAreCut) {
  std::vector<std::byte> memory(64);
  const HostArrayCopy arrays[] = {{memory.data(), 1000, 3, false},
                                  {memory.data() + 8, 2000, 25, false},
                                  {memory.data(), 3000, 0, false},
                                  {memory.data() + 40, 4000, 4, true},
                                  {memory.data() + 50, 5000, 2, false}};
  const std::vector<ChunkLoad> loads = cut_into_loads(arrays, 10);
  // 3 + 7, 10, 8 of the second array's last bytes with the 2 of the last array; the pinned one is alone.
  EXPECT_EQ(sizes_of(loads), (std::vector<std::vector<std::size_t>>{{3, 7}, {10}, {4}, {8, 2}}));
  EXPECT_TRUE(loads[2].pinned);
  EXPECT_EQ(loads[1].copies[0].to, 2007u);
  EXPECT_EQ(loads[1].copies[0].from, memory.data() + 15);
  EXPECT_EQ(loads[3].copies[1].to, 5000u);
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

HostToDeviceOptions small_ring() {
  HostToDeviceOptions options;
  options.chunk_bytes = 1000;
  options.chunks = 3;
  options.threads = 3;
  return options;
}

TEST(HostToDeviceTest, ChunksAreUsedAgainWhenTheyWereCopied) {
  AsynchronousDriver fake;
  {
    auto copies = HostToDevice::create(fake.driver(), small_ring());
    ASSERT_TRUE(copies.ok()) << copies.error().message;
    EXPECT_EQ((*copies)->pinned_bytes(), 3000u);
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::vector<std::byte>> sources;
      std::vector<std::vector<std::byte>> targets;
      std::vector<HostArrayCopy> arrays;
      for (int number = 0; number < 5; ++number) {
        sources.push_back(random_bytes(random, random() % 4000));
        targets.emplace_back(sources.back().size());
        arrays.push_back({sources.back().data(), reinterpret_cast<std::uint64_t>(targets.back().data()),
                          sources.back().size(), false});
      }
      const auto expected = sources;
      ASSERT_TRUE((*copies)->copy(arrays).ok());
      for (auto& source : sources) std::fill(source.begin(), source.end(), std::byte{0xff});  // may be changed now
      fake.synchronize((*copies)->stream());
      ASSERT_EQ(targets, expected) << "round " << round;
    }
  }
  EXPECT_EQ(fake.objects(), 0u);
}

TEST(HostToDeviceTest, AQuarterOfTheProcessorsFillsChunksAtMostFour) {
  const std::pair<std::size_t, std::size_t> expected[] = {{0, 1}, {1, 1}, {4, 1}, {7, 1}, {8, 2}, {16, 4}, {192, 4}};
  for (const auto& [processors, threads] : expected) EXPECT_EQ(filling_threads(processors), threads) << processors;
  const auto running_with = [](std::size_t threads) {
    AsynchronousDriver fake;
    HostToDeviceOptions options = small_ring();
    options.threads = threads;
    const auto copies = HostToDevice::create(fake.driver(), options);
    EXPECT_TRUE(copies.ok());
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  EXPECT_EQ(running_with(0), running_with(filling_threads(usable_processors())));
  EXPECT_EQ(running_with(3), running_with(1) + 2) << "the caller of copy() is one of them";
}

TEST(HostToDeviceTest, FailuresNameTheCall) {
  AsynchronousDriver fake;
  HostToDeviceOptions options = small_ring();
  options.device = 3;
  const auto missing = HostToDevice::create(fake.driver(), options);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("device 3: cuDeviceGet"));

  auto copies = HostToDevice::create(fake.driver(), small_ring());
  ASSERT_TRUE(copies.ok());
  std::vector<std::byte> source(10000);
  std::vector<std::byte> target(10000);
  const HostArrayCopy array{source.data(), reinterpret_cast<std::uint64_t>(target.data()), source.size(), false};
  fake.copies_left(4);
  const auto begun = (*copies)->copy({&array, 1});
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().message, "cuMemcpyHtoDAsync: CUDA_ERROR_OUT_OF_MEMORY (2)");
}

TEST(HostToDeviceTest, DetectsAForkedChild) {
  AsynchronousDriver fake;
  auto copies = HostToDevice::create(fake.driver(), small_ring());
  ASSERT_TRUE(copies.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool told = !(*copies)->copy({}).ok();
    copies->reset();  // does not wait for threads that are not there
    ::_exit(told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

using Bytes = std::vector<std::byte>;

/// Batch `number`: two arrays with sizes and values that follow from the number.
SourceBatch make_batch(std::size_t number) {
  std::mt19937 random(static_cast<unsigned>(number));
  auto memory = std::make_shared<std::vector<Bytes>>();
  SourceBatch batch;
  for (int array = 0; array < 2; ++array) {
    memory->push_back(random_bytes(random, random() % 5000));
    batch.arrays.push_back({reinterpret_cast<std::uint64_t>(memory->back().data()), memory->back().size()});
  }
  // Addresses that the vector's growth has left behind.
  for (int array = 0; array < 2; ++array) {
    batch.arrays[static_cast<std::size_t>(array)].address =
        reinterpret_cast<std::uint64_t>((*memory)[static_cast<std::size_t>(array)].data());
  }
  batch.pinned = number % 5 == 4;
  batch.owner = memory;
  return batch;
}

bool holds(const std::vector<BatchBytes>& arrays, std::size_t number) {
  const SourceBatch expected = make_batch(number);
  for (std::size_t index = 0; index < arrays.size(); ++index) {
    if (arrays[index].bytes != expected.arrays[index].bytes) return false;
    if (std::memcmp(reinterpret_cast<const void*>(arrays[index].address),
                    reinterpret_cast<const void*>(expected.arrays[index].address), arrays[index].bytes) != 0) {
      return false;
    }
  }
  return arrays.size() == expected.arrays.size();
}

TEST(BatchPipelineTest, ADeviceFindsEachBatchWhenItGetsThere) {
  AsynchronousDriver fake;
  const cuda::Stream compute = fake.make_stream();
  {
    PipelineOptions options;
    options.device = small_ring();
    options.readers = 2;
    auto pipeline = BatchPipeline::create(
        &fake.driver(),
        [](std::size_t number) { return number < 60 ? std::optional(make_batch(number)) : std::nullopt; }, options);
    ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
    std::atomic<int> right = 0;
    std::uint64_t bytes = 0;
    while (auto batch = (*pipeline)->next(compute)) {
      for (const BatchBytes& array : batch->arrays) bytes += array.bytes;
      // Looks at the batch when the device gets there, long after the host has given it back.
      fake.launch(compute,
                  [&right, arrays = batch->arrays, number = batch->number] { right += holds(arrays, number); });
      (*pipeline)->give_back(std::move(*batch), compute);
    }
    fake.synchronize(compute);
    EXPECT_EQ(right, 60);
    EXPECT_EQ((*pipeline)->copied_bytes(), bytes);
    EXPECT_EQ((*pipeline)->times().items, 60u);
  }
  EXPECT_EQ(fake.objects(), 1u) << "the test's stream";
}

TEST(BatchPipelineTest, ALoopThatIsLeftLeavesNothingBehind) {
  AsynchronousDriver fake;
  {
    PipelineOptions options;
    options.device = small_ring();
    options.ahead = 3;
    auto pipeline = BatchPipeline::create(
        &fake.driver(), [](std::size_t number) { return std::optional(make_batch(number)); }, options);
    ASSERT_TRUE(pipeline.ok());
    auto batch = (*pipeline)->next(nullptr);
    ASSERT_TRUE(batch);
    (*pipeline)->give_back(std::move(*batch), nullptr);
  }
  EXPECT_EQ(fake.objects(), 0u);
}

TEST(BatchPipelineTest, NoMemoryForABatchIsAnErrorInItsPlace) {
  AsynchronousDriver fake;
  fake.allocations_left(1);
  PipelineOptions options;
  options.device = small_ring();
  options.ahead = 1;
  auto pipeline = BatchPipeline::create(
      &fake.driver(), [](std::size_t number) { return std::optional(make_batch(number)); }, options);
  ASSERT_TRUE(pipeline.ok());
  auto first = (*pipeline)->next(nullptr);
  ASSERT_TRUE(first);
  try {
    (void)(*pipeline)->next(nullptr);
    FAIL() << "a second buffer could not be had";
  } catch (const BatchPipeline::CopyFailed& failed) {
    EXPECT_THAT(failed.error.message, HasSubstr("for a batch: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  }
  EXPECT_FALSE((*pipeline)->next(nullptr));
  (*pipeline)->give_back(std::move(*first), nullptr);
}

TEST(BatchPipelineTest, WithoutADeviceBatchesStayWhereTheyAre) {
  auto pipeline = BatchPipeline::create(
      nullptr, [](std::size_t number) { return number < 10 ? std::optional(make_batch(number)) : std::nullopt; }, {});
  ASSERT_TRUE(pipeline.ok());
  std::size_t number = 0;
  while (auto batch = (*pipeline)->next(nullptr)) {
    EXPECT_EQ(batch->number, number);
    EXPECT_TRUE(holds(batch->arrays, number++));
  }
  EXPECT_EQ(number, 10u);
  EXPECT_EQ((*pipeline)->pinned_bytes(), 0u);
}

}  // namespace
}  // namespace tidemark
