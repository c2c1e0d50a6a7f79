#include "query/words/printable.h"

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

TEST(Printable, EscapesWhatCannotBeSeen) {
  EXPECT_EQ(printable("a\u200b\u200d\u00ad\ufeff"), "a\\u200b\\u200d\\xad\\ufeff");
  EXPECT_EQ(printable("a\U000E0041"), "a\\U000e0041");  // a tag character
  EXPECT_EQ(printable("\u2028\u2029"), "\\u2028\\u2029");
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_EQ(printable(mark).front(), '\\');
  }
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

TEST(Shown, BoundsNamesAfterEscapingThem) {
  EXPECT_EQ(shown("forward"), "forward");
  EXPECT_EQ(display_width(shown(std::string(300'000, 'n'))), 100U);
  EXPECT_EQ(display_width(shown(std::string(300'000, '\n'))), 100U) << "four columns each";
  EXPECT_EQ(shown("0123456789", 6),
            "01\xE2\x80\xA6"
            "789");
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width("model.py"), 8U);
  EXPECT_EQ(display_width("gr\u00f6\u00dfe"), 5U);
  EXPECT_EQ(display_width("\u6a21\u578b.py"), 7U);  // two ideographs of two columns each (Unicode TR 11: W)
  EXPECT_EQ(display_width("e\u0301"), 1U);          // a letter and a combining accent
  EXPECT_EQ(display_width("\u2026\u2190\u2264\u00b5"), 4U);
}

TEST(Fit, CutsBetweenCharacters) {
  // 9 columns: 3 of them before the ellipsis, so one ideograph, and 5 after it, so two.
  EXPECT_EQ(fit("\u6a21\u578b\u6a21\u578b\u6a21\u578b", 9), "\u6a21\u2026\u6a21\u578b");
  // The accent stays with its letter.
  EXPECT_EQ(fit("e\u0301e\u0301e\u0301e\u0301", 3), "\u2026e\u0301e\u0301");
}

TEST(Printable, SentencesGiveWayAtTheirEnd) {
  EXPECT_EQ(fit_beginning("call backward() once", 20), "call backward() once");
  EXPECT_EQ(fit_beginning("call backward() once", 10), "call back…");
  EXPECT_EQ(fit_beginning("模型的层 a", 6), "模型…");
  EXPECT_EQ(fit_beginning("call", 0), "call");
}

TEST(Printable, OneWordOfAShell) {
  EXPECT_EQ(shell_word("runs/a.tide"), "runs/a.tide");
  EXPECT_EQ(shell_word("my run.tide"), "'my run.tide'");
  EXPECT_EQ(shell_word("it's.tide"), "'it'\\''s.tide'");
  EXPECT_EQ(shell_word("-o.tide"), "./-o.tide");
  EXPECT_EQ(shell_word("-o my.tide"), "'./-o my.tide'");
  EXPECT_EQ(shell_argument("--batch-size"), "--batch-size") << "an option of a program, not a file";
  EXPECT_EQ(shell_argument("a b"), "'a b'");
  EXPECT_EQ(shell_word("$(rm).tide"), "'$(rm).tide'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace tidemark
