#include <gtest/gtest.h>

#include "analyze/common/earlier_frees.h"

namespace tidemark {
namespace {

TEST(Advice, SavesOnePercentOfThePeakAndOneMebibyte) {
  EXPECT_TRUE(is_worth_advice(kMiB, 100 * kMiB));
  EXPECT_FALSE(is_worth_advice(kMiB, 100 * kMiB + 1));
  EXPECT_FALSE(is_worth_advice(kMiB - 1, kMiB)) << "nearly all of a small peak";
  EXPECT_TRUE(is_worth_advice(kMiB, kMiB));
  EXPECT_FALSE(is_worth_advice(800 * kMiB, 80 * kGiB)) << "819.2 MiB are 1%";
  EXPECT_TRUE(is_worth_advice(820 * kMiB, 80 * kGiB));
  EXPECT_FALSE(is_worth_advice(0, 0));
  EXPECT_FALSE(is_worth_advice(~std::uint64_t{0} / 101, ~std::uint64_t{0}));
}

}  // namespace
}  // namespace tidemark
