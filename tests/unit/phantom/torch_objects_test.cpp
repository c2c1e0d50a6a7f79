// The memory of strided tensors, compared with the addresses of all their elements.
#include "phantom/values/torch_objects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tidemark::phantom {
namespace {

// The bytes of all elements, one by one.
std::set<std::int64_t> bytes_of(const TorchTensor& tensor, std::size_t dimension = 0, std::int64_t at = 0) {
  std::set<std::int64_t> bytes;
  if (dimension == tensor.sizes.size()) {
    for (std::int64_t byte = 0; byte < tensor.item_bytes; ++byte) bytes.insert(at * tensor.item_bytes + byte);
    return bytes;
  }
  for (std::int64_t index = 0; index < tensor.sizes[dimension]; ++index)
    bytes.merge(bytes_of(tensor, dimension + 1, at + index * tensor.strides[dimension]));
  return bytes;
}

TEST(TorchTensor, PiecesAreTheBytesOfItsElements) {
  std::vector<char> memory(1 << 16);
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    TorchTensor tensor;
    tensor.data = memory.data();
    const auto draw = [&random](std::int64_t below) { return static_cast<std::int64_t>(random()) % below; };
    tensor.item_bytes = std::int64_t{1} << draw(4);
    std::int64_t stride = 1;
    for (std::int64_t dimension = draw(4); dimension > 0; --dimension) {
      tensor.sizes.push_back(draw(5));
      tensor.strides.push_back(draw(5) == 0 ? 0 : stride);
      stride *= std::max<std::int64_t>(tensor.sizes.back(), 1);
      stride += draw(2);
    }
    const auto pieces = tensor.pieces();
    ASSERT_TRUE(pieces);
    std::set<std::int64_t> found;
    for (const auto& [start, bytes] : *pieces)
      for (std::size_t byte = 0; byte < bytes; ++byte)
        EXPECT_TRUE(found.insert(start + byte - memory.data()).second) << "twice, seed " << seed;
    const std::set<std::int64_t> expected = bytes_of(tensor);
    EXPECT_EQ(found, expected) << "seed " << seed;
    EXPECT_EQ(tensor.extent(), expected.empty() ? 0 : *expected.rbegin() + 1) << "seed " << seed;
  }
}

TEST(TorchTensor, ScatteredOnesHaveNoPieces) {
  TorchTensor tensor;
  tensor.item_bytes = 4;
  tensor.sizes = {5000};
  tensor.strides = {2};
  EXPECT_FALSE(tensor.pieces());
  tensor.strides = {1};
  EXPECT_EQ(tensor.pieces()->size(), 1U);
}

TEST(TorchObjects, MemoryIsReadSafely) {
  const int value = 7;
  int copy = 0;
  EXPECT_TRUE(read_safely(&value, &copy, sizeof copy));
  EXPECT_EQ(copy, 7);
  EXPECT_FALSE(read_safely(reinterpret_cast<const void*>(64), &copy, sizeof copy));
}

}  // namespace
}  // namespace tidemark::phantom
