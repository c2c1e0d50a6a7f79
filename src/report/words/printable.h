// Text from a recording made safe for a terminal, and fitted into a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark {

/// Valid UTF-8 without control characters: bytes that are not UTF-8 become U+FFFD; C0 and C1 controls, DEL and the
/// marks that reorder text (Unicode TR 9) become \x1b, \u202e and so on. A recording's names cannot move the cursor.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns that printable text takes on a terminal: its code points. (Wide East Asian characters take two; counting
/// them as one misaligns a column, nothing worse.)
[[nodiscard]] std::size_t display_width(std::string_view text);

/// At most `width` columns of printable text: the middle makes room for "…". `width` 0 = unlimited.
[[nodiscard]] std::string fit(std::string_view text, std::size_t width);

}  // namespace tidemark
