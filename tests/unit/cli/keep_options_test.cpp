// Values that --keep and --dump accept and refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/recording_options.h"

namespace tidemark::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMinute = 60 * kSecond;

void expect_limits(const char* text, std::uint64_t time_ns, std::uint64_t bytes) {
  SCOPED_TRACE(text);
  const auto limits = parse_keep(text);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->time_ns, time_ns);
  EXPECT_EQ(limits->bytes, bytes);
}

void expect_refused(const char* text, const char* why) {
  SCOPED_TRACE(text);
  const auto limits = parse_keep(text);
  ASSERT_FALSE(limits);
  EXPECT_THAT(limits.error().message, HasSubstr(why));
}

TEST(ParseKeep, Times) {
  expect_limits("5s", 5 * kSecond, 0);
  expect_limits("30s", 30 * kSecond, 0);
  expect_limits("10min", 10 * kMinute, 0);
  expect_limits("10m", 10 * kMinute, 0);
  expect_limits("2h", 120 * kMinute, 0);
  expect_limits("7d", 7 * 24 * 60 * kMinute, 0);
  expect_limits("1.5h", 90 * kMinute, 0);
  expect_limits("0.1min", 6 * kSecond, 0);
  expect_limits("10 min", 10 * kMinute, 0);
  expect_limits("2w", 14ULL * 24 * 60 * kMinute, 0);
  expect_limits("366d", 366ULL * 24 * 60 * kMinute, 0);
}

TEST(ParseKeep, SizesAreBinaryUnderBothNames) {
  expect_limits("1MiB", 0, 1 << 20);
  expect_limits("500MB", 0, 500ULL << 20);
  expect_limits("1024KiB", 0, 1 << 20);
  expect_limits("2048KB", 0, 2 << 20);
  expect_limits("2GiB", 0, 2ULL << 30);
  expect_limits("0.5GB", 0, 512ULL << 20);
  expect_limits("3TiB", 0, 3ULL << 40);
  expect_limits("1024TB", 0, 1ULL << 50);
  expect_limits("10gib", 0, 10ULL << 30);
  expect_limits("10M", 0, 10 << 20);
}

TEST(ParseKeep, OneOfEach) {
  expect_limits("10min,2GiB", 10 * kMinute, 2ULL << 30);
  expect_limits("2GiB,10min", 10 * kMinute, 2ULL << 30);
}

TEST(ParseKeep, Garbage) {
  for (const char* text :
       {"",          ",",           "10",   "min",    "GiB",     "ten minutes", " 10min",     "10min ",
        "10minutes", "10Min",       "10xb", "+10min", "0x10min", "1e",          "10min;2GiB", "10min,",
        ",10min",    "10min,,2GiB", "inf",  "nans",   "--keep",  "10%"}) {
    expect_refused(text, "invalid value '");
  }
}

TEST(ParseKeep, RejectsZeroNegativeAndNonFiniteValues) {
  for (const char* text :
       {"0s", "0min", "0GiB", "0", "-1min", "-2GiB", "-0s", "10min,0GiB", "nans", "nanGiB", "infs", "infGiB"}) {
    expect_refused(text, "invalid value '");
  }
}

TEST(ParseKeep, TooLittleAndTooMuch) {
  for (const char* text : {"1s", "4.999s", "0.001h", "366.1d", "1e300d", "10000000000000000000s"}) {
    expect_refused(text, "is not between 5s and 366d");
  }
  for (const char* text : {"1023KiB", "0.5MB", "1025TiB", "1024PB"}) {
    expect_refused(text, "is not between 1.0 MiB and 1024 TiB");
  }
  expect_refused("1e999s", "invalid value '");  // no number that a double holds
  expect_refused("1e300GiB", "invalid value '");
}

TEST(ParseKeep, TwoOfAKind) {
  expect_refused("1min,2min", "has two times (expected one time, one size, or one of each)");
  expect_refused("1GiB,2GiB", "has two sizes");
  expect_refused("1GiB,1min,2GiB", "has two sizes");
}

TEST(ParseTriggers, EachAndAll) {
  const auto all = parse_triggers("on-oom,on-signal,on-exit-code");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->on_oom && all->on_signal && all->on_exit_code);
  const auto one = parse_triggers("on-signal");
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->on_signal);
  EXPECT_FALSE(one->on_oom || one->on_exit_code);
}

TEST(ParseTriggers, Garbage) {
  for (const char* text : {"", ",", "oom", "on-oom,", "on-oom on-signal", "ON-OOM", "on-exit"}) {
    SCOPED_TRACE(text);
    const auto triggers = parse_triggers(text);
    ASSERT_FALSE(triggers);
    EXPECT_THAT(triggers.error().message, HasSubstr("expected on-oom, on-signal and on-exit-code"));
  }
}

}  // namespace
}  // namespace tidemark::cli
