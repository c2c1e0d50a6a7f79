#include "tui/canvas.h"

#include <gtest/gtest.h>

namespace tidemark::tui {
namespace {

TEST(Canvas, CutsOffWhatIsOutside) {
  Canvas canvas(5, 2);
  EXPECT_EQ(canvas.print(3, 0, "abc"), 5U);
  canvas.print(0, 7, "below");
  EXPECT_EQ(canvas.text(), "   ab\n\n");
}

TEST(Canvas, WideCharactersTakeTwoCellsAndAreNotHalved) {
  Canvas canvas(4, 2);
  canvas.print(0, 0, "日本語");  // the third one does not fit
  canvas.print(0, 1, "a日本");   // nor does half of the second one
  EXPECT_EQ(canvas.text(), "日本\na日\n");
  EXPECT_EQ(canvas.at(1, 0).text, "");
}

TEST(Canvas, CombiningMarksStayWithTheirCharacter) {
  Canvas canvas(2, 1);
  canvas.print(0, 0, "e\xCC\x81x");
  EXPECT_EQ(canvas.at(0, 0).text, "e\xCC\x81");
  EXPECT_EQ(canvas.at(1, 0).text, "x");
}

TEST(Canvas, AsciiReplacesUnsupportedCharacters) {
  Canvas canvas(8, 1, false);
  canvas.print(0, 0, "ä…→日x");
  EXPECT_EQ(canvas.text(), "?~>??x\n");
}

TEST(Region, HasPlacesOfItsOwnAndKeepsInside) {
  Canvas canvas(8, 3);
  const Region region = Region(canvas).part(2, 1, 4, 5);
  EXPECT_EQ(region.height(), 2U);
  region.print(0, 0, "abcdef");
  region.print_right(4, 1, "xy");
  region.print(0, 2, "outside");
  EXPECT_EQ(canvas.text(), "\n  abcd\n    xy\n");
}

TEST(Region, SelectsARow) {
  Canvas canvas(4, 2);
  Region(canvas).part(1, 1, 2, 1).select_row(0);
  EXPECT_FALSE(canvas.at(0, 1).style.selected);
  EXPECT_TRUE(canvas.at(1, 1).style.selected);
  EXPECT_FALSE(canvas.at(3, 1).style.selected);
}

}  // namespace
}  // namespace tidemark::tui
