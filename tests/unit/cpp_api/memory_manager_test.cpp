#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tidemark/memory_manager.h>

#include <cstddef>
#include <string>

namespace {

// With a GPU it works, without one it fails with the reason.
TEST(MemoryManager, WorksOrFailsWithAReason) {
  try {
    const tidemark::MemoryManager manager;
    const tidemark::MemoryState memory = manager.check_memory();
    EXPECT_GT(memory.total_bytes, memory.free_bytes);
    EXPECT_GT(memory.free_bytes, 0U);
    tidemark::BatchSizeSettings settings;
    settings.maximum = 24;
    settings.multiple_of = 8;
    const tidemark::BatchSize found = manager.auto_batch_size([](std::size_t size) { return size <= 16; }, settings);
    EXPECT_EQ(found.batch_size, 16U);
    EXPECT_EQ(found.does_not_fit, 24U);
    EXPECT_FALSE(found.maximum_fits);
    EXPECT_THROW(static_cast<void>(manager.auto_batch_size(nullptr)), tidemark::Error);
  } catch (const tidemark::Error& error) {
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("CUDA driver"));
  }
  EXPECT_THROW(tidemark::MemoryManager(1000), tidemark::Error);
}

}  // namespace
