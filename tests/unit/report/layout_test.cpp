#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/terminal.h"
#include "report/common/text.h"
#include "report/plot/axis.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

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

TEST(Columns, ShortensTheLastCellWhereTheOthersLeaveLittleRoom) {
  Columns columns({"bytes", "when", "where"});
  columns.add({"1 B", std::string(30, 't'), std::string(40, 'x')});
  columns.add({"2 B", "t", "y"});
  EXPECT_EQ(columns.text({false, 60}, 2),
            "  bytes                            when  where\n"
            "    1 B  tttttttttttttttttttttttttttttt  xxxxxxx…xxxxxxxxxxxx\n"
            "    2 B                               t  y\n");
}

TEST(Columns, KeepsAShortLastColumnBesideTheOthers) {
  Columns columns({"bytes", "metric"});
  columns.add({std::string(30, '1'), "peak"});
  EXPECT_THAT(columns.text({false, 50}, 0), HasSubstr("1  peak\n"));
}

// A stack of 30 frames of 60 columns each, as in a leak of a large program.
TEST(LeaksText, KeepsToTheTerminalsWidth) {
  LeakSite site;
  for (std::uint32_t line = 1; line <= 30; ++line) {
    site.stack.frames.push_back({Location::Kind::python, "some_function_of_the_project",
                                 "/home/me/some_project_of_mine/some_module_of_it.py", line});
  }
  site.stack.call_site = 29;
  site.growth.bytes_per_step = {1e6, 9e5, 1.1e6};
  site.growth.first_step = 3;
  site.growth.last_step = 19'000;
  site.first_step_ns = 1'234'567'890;
  site.last_step_ns = 123'456'789'000;
  site.held_bytes = 123'456'789;
  site.held_blocks = 12'345;
  Leaks leaks;
  leaks.verdict = LeakVerdict::leak;
  leaks.leaks = {site};
  leaks.objects.emplace_back().growth = site.growth;
  leaks.leak_count = 1;
  for (const std::size_t width : {80U, 120U}) {
    std::istringstream lines(to_text(leaks, {false, width}));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(display_width(line), width) << line;
    EXPECT_EQ(count, 6U) << "verdict, headings, numbers, stack, times, next command";
  }
  EXPECT_THAT(to_text(leaks, {false, 80}), HasSubstr("\n      some_function_of_the_project ("));
  EXPECT_THAT(to_text(leaks, {false, 80}), HasSubstr("some_module_of_it.py:30)"));
}

TEST(RanksText, ShowsSixtyFourRanksOnTwoScreens) {
  std::vector<RankRow> rows;
  for (std::int32_t rank = 0; rank < 64; ++rank) {
    RankRow& row = rows.emplace_back();
    row.recording.process.rank = rank;
    row.recording.path = "/some/folder/of/results/run.rank" + std::to_string(rank) + ".tide";
    row.device = Device{DeviceType::cuda, static_cast<std::int8_t>(rank % 8)};
    row.peak_allocated_bytes = rank == 5 ? 70'000'000'000 : 60'000'000'000;
    row.peak_reserved_bytes = row.device_used_bytes = 81'234'567'890;
  }
  const std::string text = to_text(compare_ranks(std::move(rows)), {}, {false, 80});
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(display_width(line), 80U) << line;
  EXPECT_LE(count, 70U);
  EXPECT_THAT(text, HasSubstr("+16.7% outlier   no  rank 5, cuda:5\n"));
  EXPECT_THAT(text, HasSubstr("--rank N"));
}

TEST(Terminal, HasNoColoursInAPipe) {
  EXPECT_FALSE(detect_terminal(-1).colour);
  EXPECT_EQ(detect_terminal(-1).width, 120U);
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

std::vector<std::string> tick_labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(ClockTicks, AreRoundTimesOfDay) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kBegin = 1'795'453'920 * kSecond;  // 2026-11-23 17:12:00 UTC
  const std::vector<Tick> day = clock_ticks(kBegin, 24 * 3600 * kSecond);
  EXPECT_EQ(tick_labels(day), (std::vector<std::string>{"2026-11-23 18:00", "21:00", "2026-11-24", "03:00", "06:00",
                                                        "09:00", "12:00", "15:00"}));
  EXPECT_DOUBLE_EQ(day[0].value, 48 * 60 * 1e9);
  EXPECT_EQ(tick_labels(clock_ticks(kBegin, 4 * 86'400 * kSecond)),
            (std::vector<std::string>{"2026-11-24", "12:00", "2026-11-25", "12:00", "2026-11-26", "12:00", "2026-11-27",
                                      "12:00"}));
  EXPECT_EQ(tick_labels(clock_ticks(kBegin + 1, 3 * kSecond)),
            (std::vector<std::string>{"2026-11-23 17:12:01", "17:12:02", "17:12:03"}));
  for (const std::uint64_t seconds : {60U, 3600U, 604'800U, 2'592'000U, 31'536'000U, 3'153'600'000U}) {
    const std::vector<Tick> ticks = clock_ticks(kBegin, seconds * kSecond);
    EXPECT_GE(ticks.size(), 2U) << seconds;
    EXPECT_LE(ticks.size(), 9U) << seconds;
    EXPECT_LE(ticks.back().value, static_cast<double>(seconds) * 1e9);
  }
}

TEST(NumberTicks, AreRoundForAnySignAndSize) {
  const auto covers = [](double lowest, double highest) {
    const std::vector<Tick> ticks = number_ticks(lowest, highest);
    EXPECT_GE(ticks.size(), 2U) << lowest;
    EXPECT_LE(ticks.size(), 8U) << lowest;
    EXPECT_LE(ticks.front().value, lowest);
    EXPECT_GE(ticks.back().value, highest);
    return ticks;
  };
  EXPECT_EQ(covers(0.2, 3.1)[1].label, "1");
  EXPECT_EQ(covers(-5, 20).front().label, "-10");
  EXPECT_EQ(covers(0, 0)[1].label, "-0.5");
  covers(7, 7);
  covers(1e9, 1e9 + 1e-6);
  covers(-1e300, 1e300);
  covers(1e-300, 2e-300);
}

TEST(ShareCell, HasABarOnAWideTerminalWithColours) {
  const Terminal wide{.colour = true, .width = 120};
  EXPECT_EQ(share_cell(0.5, wide), "████      50.0%");
  EXPECT_EQ(share_cell(1.0, wide), "████████ 100.0%");
  EXPECT_EQ(share_cell(1.0 / 64, wide), "▏          1.6%");
  EXPECT_EQ(share_cell(7.0, wide), "████████ 700.0%") << "a bar has an end";
  EXPECT_EQ(share_cell(0.5, Terminal{.colour = true, .width = 80}), "50.0%");
  EXPECT_EQ(share_cell(0.5, Terminal{.colour = false, .width = 120}), "50.0%");
}

}  // namespace
}  // namespace tidemark
