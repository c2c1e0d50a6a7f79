#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

#include "batching/batch_search.h"
#include "batching/free_memory.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kDeviceBytes = std::uint64_t{16} << 30;

// The device's allocated memory, and the number of queries.
std::atomic<std::uint64_t> device_taken;
std::atomic<std::uint64_t> questions;
thread_local cuda::Context device_context = nullptr;

cuda::Driver fake_driver() {
  device_taken = 0;
  questions = 0;
  cuda::Driver driver;
  driver.current_context = [](cuda::Context* context) {
    *context = device_context;
    return cuda::kSuccess;
  };
  driver.set_current_context = [](cuda::Context context) {
    device_context = context;
    return cuda::kSuccess;
  };
  driver.memory_info = [](std::size_t* free, std::size_t* total) {
    if (device_context == nullptr) return 201;  // CUDA_ERROR_INVALID_CONTEXT
    *free = kDeviceBytes - device_taken;
    *total = kDeviceBytes;
    ++questions;
    return cuda::kSuccess;
  };
  return driver;
}

int context_object;

// A step that takes its memory until it has been seen twice, so that one whole question was in between.
bool sampled_step(std::uint64_t bytes) {
  if (bytes > kDeviceBytes) return false;
  device_taken = bytes;
  const std::uint64_t before = questions;
  while (questions < before + 2) std::this_thread::sleep_for(std::chrono::microseconds(100));
  device_taken = 0;
  return true;
}

TEST(FindBatchSize, FollowsThePeaksThatAThreadSees) {
  const cuda::Driver driver = fake_driver();
  // 1 GiB and 100 MiB for each sample: 153 fit.
  const auto found =
      find_batch_size(driver, &context_object,
                      [](std::size_t size) { return sampled_step((std::uint64_t{1} << 30) + size * (100 << 20)); }, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->end, BatchSearchEnd::found);
  EXPECT_LE(found->probes, 5U);
  EXPECT_GE(*found->batch_size, 146U);
  EXPECT_LE(*found->batch_size, 153U);
  EXPECT_DOUBLE_EQ(*found->slope_bytes, 100 << 20);
  EXPECT_DOUBLE_EQ(*found->intercept_bytes, 1 << 30);
  EXPECT_EQ(device_context, nullptr);
}

TEST(FindBatchSize, ExceptionsOfTheStepReachTheCaller) {
  const cuda::Driver driver = fake_driver();
  EXPECT_THROW(static_cast<void>(find_batch_size(driver, &context_object,
                                                 [](std::size_t) -> bool { throw std::runtime_error("shape"); }, {})),
               std::runtime_error);
}

TEST(FindBatchSize, FailsIfTheDriverDoesNotReportMemory) {
  const cuda::Driver driver = fake_driver();
  const auto found = find_batch_size(driver, nullptr, [](std::size_t) { return true; }, {});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("cuMemGetInfo: error (201)"), std::string::npos);
  BatchSearchOptions none;
  none.start = 0;
  EXPECT_FALSE(find_batch_size(
      driver, &context_object, [](std::size_t) { return true; }, none));
}

}  // namespace
}  // namespace tidemark
