#include "cli/time_span.h"

#include <gtest/gtest.h>

namespace tidemark::cli {
namespace {

TEST(TimeSpan, SecondsAndUnits) {
  EXPECT_EQ(parse_seconds("0.25"), 0.25);
  EXPECT_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_EQ(parse_seconds("90s"), 90);
  EXPECT_EQ(parse_seconds("10min"), 600);
  EXPECT_EQ(parse_seconds("1.5h"), 5400);
  EXPECT_EQ(parse_seconds("-1"), -1) << "who asks has bounds of their own";
  for (const char* text : {"", "h", "1 h", "1x", "1h1"}) EXPECT_FALSE(parse_seconds(text)) << text;
}

TEST(TimeSpan, OfAWholeSecondAtLeast) {
  EXPECT_EQ(parse_time_span("2h"), std::chrono::seconds(7200));
  EXPECT_FALSE(parse_time_span("500ms"));
  EXPECT_FALSE(parse_time_span("101y"));
}

}  // namespace
}  // namespace tidemark::cli
