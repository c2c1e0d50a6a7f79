#include "base/units.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(FormatBytes, StaysInBytesBelowOneKibibyte) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
}

TEST(FormatBytes, UsesBinaryUnits) {
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(3 * 1024 * 1024 / 2), "1.5 MiB");
  EXPECT_EQ(format_bytes(80ULL << 30), "80.0 GiB");
}

TEST(FormatBytes, NeverPrintsAThousandAndTwentyFourOfAUnit) {
  EXPECT_EQ(format_bytes((1ULL << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(~0ULL - (1ULL << 40)), "16.0 EiB");
}

TEST(FormatBytes, MarksSaturatedSums) {
  EXPECT_EQ(format_bytes(~0ULL), "\xE2\x89\xA5 16.0 EiB");
}

TEST(FormatDuration, PicksTheUnit) {
  EXPECT_EQ(format_duration_ns(17), "17 ns");
  EXPECT_EQ(format_duration_ns(3'200'000), "3.2 ms");
  EXPECT_EQ(format_duration_ns(12'345'000'000), "12.345 s");
}

TEST(FormatCount, GroupsThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace tidemark
