// Sizes of arrays; the numbers of texels were counted by hand.
#include "collect/process/driver/array_size.h"

#include <gtest/gtest.h>

#include <optional>

namespace tidemark::process::cuda {
namespace {

constexpr std::int32_t kFloat = 0x20;
constexpr unsigned kLayered = 0x01;
constexpr unsigned kCubemap = 0x04;
constexpr unsigned kTextureGather = 0x08;

std::optional<std::uint64_t> bytes_of(const Array3DDescription& array, unsigned levels = 1) {
  std::uint64_t bytes = 0;
  return array_bytes(array, levels, &bytes) ? std::optional(bytes) : std::nullopt;
}

/// Texels of an array with one channel of 4 bytes.
std::uint64_t texels(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0,
                     unsigned levels = 1) {
  return bytes_of({width, height, depth, kFloat, 1, flags}, levels).value() / 4;
}

TEST(ArraySize, MissingExtents) {
  EXPECT_EQ(texels(100, 0, 0), 100U);
  EXPECT_EQ(texels(100, 20, 0), 2000U);
  EXPECT_EQ(texels(100, 20, 3), 6000U);
  EXPECT_EQ(texels(100, 0, 5, kLayered), 500U);
  EXPECT_EQ(texels(8, 8, 6, kCubemap), 384U);
  EXPECT_EQ(texels(8, 8, 12, kCubemap | kLayered), 768U);
  EXPECT_EQ(texels(8, 8, 0, kTextureGather), 64U);
}

TEST(ArraySize, ChannelsAndElements) {
  EXPECT_EQ(bytes_of({10, 10, 0, kFloat, 4, 0}), 1600U);
  EXPECT_EQ(bytes_of({100'000, 50'000, 0, kFloat, 4, 0}), 80'000'000'000U);
}

TEST(ArraySize, Levels) {
  EXPECT_EQ(texels(8, 4, 0, 0, 4), 32U + 8 + 2 + 1);
  EXPECT_EQ(texels(7, 5, 3, 0, 3), 105U + 3 * 2 + 1);
  EXPECT_EQ(texels(8, 8, 6, kCubemap, 2), 6U * (64 + 16));
  EXPECT_EQ(texels(4, 4, 100, kLayered, 3), 100U * (16 + 4 + 1));
}

// cuMipmappedArrayCreate limits them to 1 + floor(log2(the longest extent)).
TEST(ArraySize, ImpossibleLevels) {
  EXPECT_EQ(texels(8, 4, 0, 0, 100), 32U + 8 + 2 + 1);
  EXPECT_EQ(texels(8, 4, 0, 0, 0), 32U);
  EXPECT_EQ(texels(1, 1, 100, kLayered, 5), 100U);
}

}  // namespace
}  // namespace tidemark::process::cuda
