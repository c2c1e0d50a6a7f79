#include "trace/varint.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <limits>
#include <vector>

namespace tidemark {
namespace {

constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();

std::vector<int> encoded(std::uint64_t value) {
  std::uint8_t bytes[kMaxVarintBytes];
  return {bytes, put_varint(bytes, value)};
}

/// Puts `bytes` before others that must not matter, and returns the value read and its length.
std::pair<std::uint64_t, std::size_t> decoded(const std::vector<int>& bytes, std::uint8_t behind) {
  std::array<std::uint8_t, 32> memory;
  memory.fill(behind);
  for (std::size_t n = 0; n < bytes.size(); ++n) memory[n] = static_cast<std::uint8_t>(bytes[n]);
  const std::uint8_t* at = memory.data();
  const std::uint64_t value = get_varint(at);
  return {value, static_cast<std::size_t>(at - memory.data())};
}

TEST(Varint, WritesTheBytesOfTheDwarfStandardsExamples) {
  // DWARF 5, appendix C / figure C.1 (unsigned LEB128).
  EXPECT_EQ(encoded(2), (std::vector<int>{2}));
  EXPECT_EQ(encoded(127), (std::vector<int>{127}));
  EXPECT_EQ(encoded(128), (std::vector<int>{0x80, 1}));
  EXPECT_EQ(encoded(129), (std::vector<int>{0x81, 1}));
  EXPECT_EQ(encoded(12857), (std::vector<int>{57 + 0x80, 100}));
  EXPECT_EQ(encoded(kMax), (std::vector<int>{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}));
}

TEST(Varint, ReadsEveryLengthWhateverFollows) {
  for (const std::uint8_t behind : std::initializer_list<std::uint8_t>{0x00, 0x7F, 0x80, 0xFF}) {
    EXPECT_EQ(decoded({0}, behind), (std::pair<std::uint64_t, std::size_t>{0, 1}));
    EXPECT_EQ(decoded({57 + 0x80, 100}, behind), (std::pair<std::uint64_t, std::size_t>{12857, 2}));
    std::vector<int> bytes;
    std::uint64_t value = 0;
    for (unsigned length = 1; length <= 9; ++length) {
      // Seven bits 1010101 in every byte.
      if (!bytes.empty()) bytes.back() |= 0x80;
      bytes.push_back(0x55);
      value |= std::uint64_t{0x55} << (7 * (length - 1));
      EXPECT_EQ(decoded(bytes, behind), (std::pair<std::uint64_t, std::size_t>{value, length}));
    }
    EXPECT_EQ(decoded({255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, behind),
              (std::pair<std::uint64_t, std::size_t>{kMax, 10}));
  }
}

TEST(Varint, StaysWithinTenBytesOfAnEndlessOne) {
  EXPECT_EQ(decoded({}, 0xFF).second, kMaxVarintBytes);
}

TEST(Varint, EveryValueComesBack) {
  EXPECT_TRUE(rc::check([](std::uint64_t value) {
    value >>= *rc::gen::inRange(0, 64);
    const auto bytes = encoded(value);
    RC_ASSERT(decoded(bytes, 0x80) == (std::pair<std::uint64_t, std::size_t>{value, bytes.size()}));
  }));
}

TEST(Zigzag, NumbersSmallMagnitudesFirst) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(-2), 3U);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::max()), kMax - 1);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::min()), kMax);
}

TEST(Zigzag, DifferencesWrapAround) {
  EXPECT_EQ(delta_code(kMax, 0), 2U);
  EXPECT_EQ(delta_code(0, kMax), 1U);
  EXPECT_TRUE(rc::check(
      [](std::uint64_t from, std::uint64_t to) { RC_ASSERT(apply_delta(from, delta_code(from, to)) == to); }));
}

}  // namespace
}  // namespace tidemark
