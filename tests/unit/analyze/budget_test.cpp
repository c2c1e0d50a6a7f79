#include <gtest/gtest.h>

#include <limits>

#include "analyze/usage/compare.h"

namespace tidemark {
namespace {

bool exceeded(const char* budget, std::uint64_t before, std::uint64_t now) {
  return parse_budget(budget)->exceeded(before, now);
}

TEST(Budget, ShareIsRelativeToA) {
  EXPECT_FALSE(exceeded("5%", 1000, 1050));
  EXPECT_TRUE(exceeded("5%", 1000, 1051));
  EXPECT_FALSE(exceeded("0.1%", 1000000, 1001000));
  EXPECT_TRUE(exceeded("0.1%", 1000000, 1001001));
  EXPECT_FALSE(exceeded("0%", 1000, 1000));
  EXPECT_TRUE(exceeded("0%", 1000, 1001));
  EXPECT_TRUE(exceeded("500%", 0, 1));
  EXPECT_FALSE(exceeded("200%", 1000, 3000));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(exceeded("100%", most / 2, most - 1));
  EXPECT_TRUE(exceeded("99%", most / 2, most - 1));
}

TEST(Budget, ASizeIsInBytes) {
  EXPECT_FALSE(exceeded("100", 1000, 1100));
  EXPECT_TRUE(exceeded("100", 1000, 1101));
  EXPECT_FALSE(exceeded("1", 1000, 0));
  EXPECT_EQ(parse_budget("512B")->amount, 512U);
  EXPECT_EQ(parse_budget("1KiB")->amount, 1024U);
  EXPECT_EQ(parse_budget("100MiB")->amount, 104857600U);
  EXPECT_EQ(parse_budget("1Mi")->amount, 1048576U);
  EXPECT_EQ(parse_budget("100mb")->amount, 104857600U);
  EXPECT_EQ(parse_budget("1.5GiB")->amount, 1610612736U);
  EXPECT_EQ(parse_budget("2T")->amount, 2199023255552U);
}

TEST(Budget, RejectsInvalidText) {
  for (const char* text : {"", "%", "MiB", "-5%", "5 %", "5%%", "5percent", "1MiBs", "1bb", "nan", "inf%", "1e300"}) {
    EXPECT_FALSE(parse_budget(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tidemark
