#include "tui/chart.h"

#include <gtest/gtest.h>

#include "tui/table.h"
#include "unit/tui/scene.h"

namespace tidemark::tui {
namespace {

using tidemark::testing::kSecondNs;

TEST(Chart, ColumnsAreAsHighAsWhatIsUsedAndGoOnToThePeak) {
  WatchedUsage used;
  for (std::uint64_t second = 0; second < 4; ++second) {
    used.add(second * kSecondNs, second * 8, second == 2 ? std::optional<std::uint64_t>(32) : std::nullopt);
  }
  Canvas canvas(kScaleColumns + 4, 4);
  draw_chart(Region(canvas), used.points(), {.from_ns = 0, .to_ns = 4 * kSecondNs, .top_bytes = 32});
  EXPECT_EQ(canvas.text(),
            "      32 B   ░\n"
            "             ░█\n"
            "             ██\n"
            "       0 B  ███\n");
  EXPECT_EQ(canvas.at(kScaleColumns + 2, 0).style.role, Role::peak);
  EXPECT_EQ(canvas.at(kScaleColumns + 2, 2).style.role, Role::used);
}

TEST(Chart, AValueHoldsUntilTheNextSampleAndNothingIsShownOutside) {
  WatchedUsage used;
  used.add(0, 32);
  used.add(6 * kSecondNs, 16);
  Canvas canvas(kScaleColumns + 8, 2);
  draw_chart(Region(canvas), used.points(),
             {.from_ns = -2 * static_cast<std::int64_t>(kSecondNs), .to_ns = 6 * kSecondNs, .top_bytes = 32});
  EXPECT_EQ(canvas.text(),
            "      32 B   █████\n"
            "       0 B   ██████\n");
}

TEST(Chart, SmallValuesAreVisible) {
  WatchedUsage used;
  used.add(0, 1);
  Canvas canvas(kScaleColumns + 1, 1);
  draw_chart(Region(canvas), used.points(), {.from_ns = 0, .to_ns = 1, .top_bytes = 1'000'000});
  EXPECT_EQ(canvas.at(kScaleColumns, 0).text, "▁");
}

TEST(Bar, ShowsUsedPeakAndRoom) {
  Canvas canvas(10, 4);
  const Region region(canvas);
  draw_bar(region, 0, 0, 10, {.used = 50, .total = 100, .peak = 80});
  draw_bar(region, 0, 1, 10, {.used = 1, .total = 1000, .peak = {}});
  draw_bar(region, 0, 2, 10, {.used = 999, .total = 1000, .peak = {}});
  draw_bar(region, 0, 3, 10, {.used = 2000, .total = 1000, .peak = {}});
  EXPECT_EQ(canvas.text(), "█████░░|░░\n█░░░░░░░░░\n█████████░\n██████████\n");
}

TEST(Table, KeepsTheSelectedRowInSight) {
  EXPECT_EQ(first_shown(5, 4, 5), 0U);
  EXPECT_EQ(first_shown(100, 0, 10), 0U);
  EXPECT_EQ(first_shown(100, 50, 10), 45U);
  EXPECT_EQ(first_shown(100, 99, 10), 90U);
}

}  // namespace
}  // namespace tidemark::tui
