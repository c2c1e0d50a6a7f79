#include <gtest/gtest.h>

#include "cli/follow.h"

namespace tidemark::cli {
namespace {

TEST(LiveScreen, ShowsWhatFits) {
  EXPECT_EQ(screen_text("a\nb\n", 24), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
  EXPECT_EQ(screen_text("a\nb\n", 3), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
}

TEST(LiveScreen, CountsWhatDoesNotFit) {
  // The cursor is in the last row, below the text.
  EXPECT_EQ(screen_text("1\n2\n3\n4\n5\n", 4), "\x1b[H1\x1b[K\n2\x1b[K\n... and 3 more lines\x1b[K\n\x1b[J");
  EXPECT_EQ(screen_text("1\n2\n3\n4\n", 4), "\x1b[H1\x1b[K\n2\x1b[K\n... and 2 more lines\x1b[K\n\x1b[J");
}

TEST(LiveScreen, ManagesWithoutRows) {
  EXPECT_EQ(screen_text("1\n2\n3\n4\n", 1), "\x1b[H1\x1b[K\n... and 3 more lines\x1b[K\n\x1b[J");
}

}  // namespace
}  // namespace tidemark::cli
