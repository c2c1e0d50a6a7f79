// The characters that bars and charts are drawn with.
#pragma once

#include <array>
#include <cstddef>

#include "tui/canvas.h"

namespace tidemark::tui {

struct Glyphs {
  std::array<const char*, 9> eighths;  ///< columns filled from below by 0 to 8 eighths
  const char* full;                    ///< of a bar
  const char* room;                    ///< of a bar: what is not used
  const char* peak;                    ///< of a chart: between what is used and the peak
  const char* rule;                    ///< a line along a row
  const char* mark;                    ///< a line along a column
};

[[nodiscard]] inline const Glyphs& glyphs_of(const Region& region) {
  static constexpr Glyphs kUnicode = {{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "█", "░", "░", "─", "┊"};
  static constexpr Glyphs kAscii = {{" ", ".", ".", ":", ":", "|", "|", "#", "#"}, "#", ".", ":", "-", "|"};
  return region.unicode() ? kUnicode : kAscii;
}

}  // namespace tidemark::tui
