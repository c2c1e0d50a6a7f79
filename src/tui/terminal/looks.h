// How roles look on a terminal: with colours, or where there are none, by bold, dim and reversed text.
#pragma once

#include <array>

#include "tui/canvas.h"

namespace tidemark::tui {

class Looks {
 public:
  Looks() = default;
  /// After the terminal was opened. `colours`: whether they are wanted; the terminal may have none.
  explicit Looks(bool colours);

  /// Attributes of ncurses.
  [[nodiscard]] int of(Style style) const;

 private:
  std::array<int, 11> attributes_{};  // by Role
};

}  // namespace tidemark::tui
