#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "report/plot/axis.h"
#include "report/text/columns.h"
#include "report/text/terminal.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

TEST(Columns, AlignsNumbersToTheRight) {
  Columns columns({"bytes", "where"});
  columns.add({"1 B", "here"});
  columns.add({"1000 B", "there"});
  EXPECT_EQ(columns.text(Terminal(), 1),
            "  bytes  where\n"
            "    1 B  here\n"
            " 1000 B  there\n");
}

TEST(Columns, ShortensTheLastColumnOnANarrowTerminal) {
  Columns columns({"bytes", "where"});
  columns.add({"1 B", std::string(100, 'x')});
  const std::string text = columns.text({false, 60}, 0);
  EXPECT_EQ(display_width(text.substr(text.find('\n') + 1)), 61U);  // and the newline
}

TEST(Terminal, HasNoColoursInAPipe) {
  EXPECT_FALSE(detect_terminal(-1).colour);
  EXPECT_EQ(paint(Terminal(), Tone::error, "x"), "x");
  EXPECT_EQ(paint({true, 80}, Tone::error, "x"), "\x1b[31mx\x1b[0m");
}

TEST(ByteTicks, AreRoundAndReachTheTop) {
  const std::vector<Tick> ticks = byte_ticks(10'641'440);
  EXPECT_EQ(ticks.front().label, "0");
  EXPECT_EQ(ticks[1].label, "2.5 MiB");
  EXPECT_DOUBLE_EQ(ticks[1].value, 2.5 * 1024 * 1024);
  EXPECT_GE(ticks.back().value, 10'641'440);
  EXPECT_LE(ticks.size(), 8U);
}

TEST(ByteTicks, HandleNothingAndEverything) {
  EXPECT_GE(byte_ticks(0).size(), 2U);
  EXPECT_EQ(byte_ticks(3)[1].label, "1 B");
  EXPECT_LE(byte_ticks(~0ULL).size(), 8U);
}

TEST(TimeTicks, StayInsideTheRun) {
  EXPECT_EQ(time_ticks(2'076'000'000)[1].label, "0.5 s");
  EXPECT_EQ(time_ticks(90'000'000)[1].label, "20 ms");
  EXPECT_EQ(time_ticks(3'600'000'000'000)[1].label, "10 min");
  for (const Tick& tick : time_ticks(2'076'000'000)) EXPECT_LE(tick.value, 2'076'000'000);
}

}  // namespace
}  // namespace tidemark
