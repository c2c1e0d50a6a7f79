#include "collect/machine/files.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

TEST(Files, Numbers) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_number(folder.write("number", "4096\n")), 4096U);
  EXPECT_EQ(read_number(folder.write("most", "18446744073709551615\n")), ~std::uint64_t{0});
  EXPECT_EQ(read_number(folder.write("word", "max\n")), std::nullopt);
  EXPECT_EQ(read_number(folder.write("too_large", "18446744073709551616\n")), std::nullopt);
  EXPECT_EQ(read_number(folder.write("empty", "")), std::nullopt);
  EXPECT_EQ(read_number(folder.at("nowhere")), std::nullopt);
}

TEST(Files, NumberAfterAKey) {
  const std::string text = "low 1\nhigh 2\noom 3\noom_kill 4\nMemTotal:       16 kB\nlast";
  EXPECT_EQ(number_after(text, "low "), 1U);
  EXPECT_EQ(number_after(text, "oom "), 3U);
  EXPECT_EQ(number_after(text, "oom_kill "), 4U);
  EXPECT_EQ(number_after(text, "MemTotal:"), 16U);
  EXPECT_EQ(number_after(text, "kill "), std::nullopt) << "not at the start of a line";
  EXPECT_EQ(number_after(text, "last"), std::nullopt);
  EXPECT_EQ(number_after("", "low "), std::nullopt);
}

TEST(Files, TextWithoutSpaceAround) {
  EXPECT_EQ(trimmed(" a b\t\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

}  // namespace
}  // namespace tidemark::testing
