
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/units.h"

namespace tidemark {
namespace {

TEST(ParseSize, Table) {
  const std::vector<std::pair<std::string, std::uint64_t>> sizes = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"1KB", kKiB},
      {"1kib", kKiB},
      {"1Ki", kKiB},
      {"1k", kKiB},
      {"500MB", 500 * kMiB},
      {"15095 MiB", 15095 * kMiB},
      {"1.5GiB", 3 * kGiB / 2},
      {".5g", kGiB / 2},
      {"2T", 2048 * kGiB},
      {"1PB", 1024 * 1024 * kGiB},
      {"1EiB", 1024 * 1024 * kGiB * 1024},
      {"1e3", 1000},
      {"0.7GiB", 751'619'277},  // rounded
      {"9007199254740993", 9'007'199'254'740'993},
      {"9223372036854774784", 9'223'372'036'854'774'784},
  };
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_size(text), bytes) << text;
}

TEST(ParseSize, RejectsInvalidText) {
  for (const char* text : {"",
                           " ",
                           "B",
                           "GiB",
                           "-1",
                           "-0",
                           "-1MB",
                           "+5MB",
                           "1 XB",
                           "1GiBs",
                           "1Bi",
                           "5%",
                           "1e",
                           "1E",
                           "0x10",
                           "nan",
                           "infGiB",
                           " 1GB",
                           "1GB ",
                           "1 ",
                           "1,5GB",
                           "8EiB",
                           "9223372036854775808",
                           "1e300GiB",
                           "99999999999999999999",
                           "1e999"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(ParseTime, Table) {
  const std::vector<std::pair<std::string, double>> seconds = {
      {"0", 0},        {"0.25", 0.25},  {"7ns", 7e-9},  {"40us", 40e-6}, {"500ms", 0.5},  {"90s", 90},
      {"90sec", 90},   {"2m", 120},     {"10min", 600}, {"1.5h", 5400},  {"30d", 2592e3}, {"2w", 1'209'600},
      {"1y", 31536e3}, {"10 min", 600}, {"1e3", 1000},  {".5h", 1800},
  };
  for (const auto& [text, value] : seconds) {
    ASSERT_TRUE(parse_time(text, kSecond)) << text;
    EXPECT_DOUBLE_EQ(*parse_time(text, kSecond), value) << text;
  }
}

TEST(ParseTime, UnitOfTheResultAndOfNumbersWithoutOne) {
  EXPECT_EQ(parse_time("12.5s", kNanosecond), 12'500'000'000);
  EXPECT_EQ(parse_time("300ms", kNanosecond), 300'000'000);
  EXPECT_EQ(parse_time("2h", kMillisecond), 7'200'000);
  EXPECT_EQ(parse_time("50", kMillisecond), 50);
  EXPECT_EQ(parse_time("50", kSecond), 50);
}

TEST(ParseTime, RejectsInvalidText) {
  for (const char* text :
       {"",   "h",     "-1",        "-1s",         "-0s",     "+1s", "1x",   "1h1",  "1h30m", "1 ",  " 1s",   "1s ",
        "1S", "10Min", "10minutes", "ten minutes", "0x10min", "nan", "nans", "infs", "12:30", "10%", "1e999s"}) {
    EXPECT_FALSE(parse_time(text, kSecond)) << text;
  }
}

TEST(ParseTime, NumbersWithoutAUnit) {
  EXPECT_TRUE(has_no_unit("12"));
  EXPECT_TRUE(has_no_unit("1e3"));
  for (const char* text : {"", "12s", "12 GB", "soon", "-1"}) EXPECT_FALSE(has_no_unit(text)) << text;
}

}  // namespace
}  // namespace tidemark
