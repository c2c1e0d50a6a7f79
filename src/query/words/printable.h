// Text from a recording made safe for a terminal, and fitted into a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark {

/// Valid UTF-8 without control characters: bytes that are not UTF-8 become U+FFFD; control and format characters
/// (Unicode categories Cc and Cf: DEL, marks that reorder text, zero-width ones) and separators of lines become \x1b,
/// \u202e, \U000e0001 and so on. A recording's names cannot move the cursor or disguise themselves.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns of printable text on a terminal: two for wide East Asian characters and most emoji, zero for combining marks
/// (utf8proc_charwidth).
[[nodiscard]] std::size_t display_width(std::string_view text);

/// The widest that a name from a recording is shown: some have no end (C++ templates, generated code).
inline constexpr std::size_t kMaxNameColumns = 100;

/// A name from a recording as text shows it: printable, and at most `columns` wide. JSON has names whole.
[[nodiscard]] std::string shown(std::string_view name, std::size_t columns = kMaxNameColumns);

/// An argument as one word of a shell's command line, quoted if necessary. Printable, which changes arguments with
/// control characters.
[[nodiscard]] std::string shell_argument(std::string_view argument);
/// The same for the name of a file, which no command takes for an option: "./-x.tide".
[[nodiscard]] std::string shell_word(std::string_view name);

/// At most `width` columns of printable text: the middle makes room for "…". `width` 0 = unlimited.
[[nodiscard]] std::string fit(std::string_view text, std::size_t width);

/// The same for sentences, which are shortened at the end.
[[nodiscard]] std::string fit_beginning(std::string_view text, std::size_t width);

}  // namespace tidemark
