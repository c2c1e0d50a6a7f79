// The rules compared with PyTorch's allocator on a real GPU: tests/data/allocator/reserved_h200.txt.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "allocator/rules.h"

namespace tidemark::pytorch {
namespace {

TEST(AllocatorRules, ReserveWhatPyTorchReserves) {
  const AllocatorRules rules{AllocatorSettings{}};
  std::ifstream file(TIDEMARK_DATA "/allocator/reserved_h200.txt");
  std::uint64_t segments = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::uint64_t block = 0;
    std::uint64_t reserved = 0;
    std::uint64_t times = 0;
    ASSERT_TRUE(std::istringstream(line) >> block >> reserved >> times) << line;
    segments += times;
    EXPECT_EQ(get_allocation_size(block), reserved) << line;
    EXPECT_EQ(rules.round_size(block), block) << line;
    EXPECT_EQ(rules.should_split(reserved, block, false), block < reserved) << line;
    EXPECT_EQ(pool_of_segment(reserved), get_pool(block)) << line;
    EXPECT_TRUE(rules.serves(reserved, block)) << line;
  }
  EXPECT_EQ(segments, 4524U);
}

}  // namespace
}  // namespace tidemark::pytorch
