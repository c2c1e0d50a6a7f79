#include "phantom/gpu/pools.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "phantom/gpu/memory.h"

namespace tidemark::phantom {
namespace {

constexpr std::uint64_t kChunk = 32 << 20;  // by which the default pool of an H200 grows

enum Attribute { kThreshold = 4, kReserved, kReservedHigh, kUsed, kUsedHigh };  // cudaMemPoolAttr

std::uint64_t attribute(Attribute which) {
  std::uint64_t value = 0;
  EXPECT_TRUE(get_pool_attribute(default_pool(0), which, &value));
  return value;
}

void set_attribute(Attribute which, std::uint64_t value) {
  EXPECT_TRUE(set_pool_attribute(default_pool(0), which, &value));
}

TEST(Pools, GrowByChunksAndGiveThemBack) {
  const std::uint64_t before = memory_used(0);
  void* const small = allocate_from_pool(default_pool(0), 1);
  void* const large = allocate_from_pool(default_pool(0), kChunk);
  EXPECT_EQ(attribute(kUsed), kChunk + 512);
  EXPECT_EQ(attribute(kReserved), 2 * kChunk);
  EXPECT_EQ(memory_used(0), before + 2 * kChunk);
  EXPECT_EQ(find_allocation(large)->start, large);

  EXPECT_TRUE(free_to_pool(large));
  EXPECT_EQ(attribute(kReserved), kChunk);
  EXPECT_TRUE(free_to_pool(small));
  EXPECT_FALSE(free_to_pool(small));
  EXPECT_EQ(memory_used(0), before);
  EXPECT_EQ(attribute(kUsedHigh), kChunk + 512);
  set_attribute(kUsedHigh, 0);
  EXPECT_EQ(attribute(kUsedHigh), 0);
}

TEST(Pools, KeepMemoryBelowTheThreshold) {
  set_attribute(kThreshold, UINT64_MAX);
  void* const pointer = allocate_from_pool(default_pool(0), 3 * kChunk);
  EXPECT_TRUE(free_to_pool(pointer));
  EXPECT_EQ(attribute(kReserved), 3 * kChunk);
  trim_pool(default_pool(0), kChunk + 1);
  EXPECT_EQ(attribute(kReserved), 2 * kChunk);
  trim_pool(default_pool(0), 0);
  EXPECT_EQ(attribute(kReserved), 0);
  set_attribute(kThreshold, 0);
}

TEST(Pools, EndWithTheDevice) {
  EXPECT_EQ(allocate_from_pool(default_pool(0), std::size_t{1} << 40), nullptr);
  EXPECT_EQ(attribute(kUsed), 0);
}

}  // namespace
}  // namespace tidemark::phantom
