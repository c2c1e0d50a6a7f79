#include "report/words/printable.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("model.py"), "model.py");
  EXPECT_EQ(printable("größe_模型.py"), "größe_模型.py");
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mred\x1b[0m"), "a\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("two\nlines\r\t"), "two\\x0alines\\x0d\\x09");
  EXPECT_EQ(printable(std::string_view("nul\0", 4)), "nul\\x00");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\x9b");  // C1 CSI, which some terminals obey
}

TEST(Printable, EscapesWhatReordersText) {
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb");
}

TEST(Printable, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(printable("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(printable("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong '/'
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(printable("\xE4\xBD"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // cut off
  EXPECT_EQ(printable("\xF4\x90\x80\x80").size(), 12U);                          // above U+10FFFF
}

TEST(Fit, KeepsBothEnds) {
  EXPECT_EQ(fit("0123456789", 0), "0123456789");
  EXPECT_EQ(fit("0123456789", 10), "0123456789");
  EXPECT_EQ(fit("0123456789", 6),
            "01\xE2\x80\xA6"
            "789");
  EXPECT_EQ(display_width(fit("größe_größe_größe", 8)), 8U);
}

}  // namespace
}  // namespace tidemark
