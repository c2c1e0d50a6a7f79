#include "tui/terminal/looks.h"

#include "tui/terminal/curses.h"

namespace tidemark::tui {
namespace {

struct Look {
  Role role;
  short colour;     // -1: the terminal's own
  chtype coloured;  // beside the colour
  chtype plain;     // without colours
};

constexpr std::array<Look, 11> kLooks = {{{Role::plain, -1, A_NORMAL, A_NORMAL},
                                          {Role::heading, -1, A_BOLD, A_BOLD},
                                          {Role::quiet, -1, A_DIM, A_DIM},
                                          {Role::key, COLOR_CYAN, A_BOLD, A_UNDERLINE},
                                          {Role::used, COLOR_GREEN, A_NORMAL, A_NORMAL},
                                          {Role::peak, COLOR_YELLOW, A_NORMAL, A_DIM},
                                          {Role::room, -1, A_DIM, A_DIM},
                                          {Role::good, COLOR_GREEN, A_NORMAL, A_NORMAL},
                                          {Role::warning, COLOR_YELLOW, A_BOLD, A_BOLD},
                                          {Role::high, COLOR_RED, A_NORMAL, A_BOLD},
                                          {Role::critical, COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE}}};

}  // namespace

Looks::Looks(bool colours) {
  const bool coloured = colours && has_colors();
  if (coloured) {
    start_color();
    use_default_colors();
  }
  for (std::size_t n = 0; n < kLooks.size(); ++n) {
    const Look& look = kLooks[n];
    attributes_[static_cast<std::size_t>(look.role)] = static_cast<int>(coloured ? look.coloured : look.plain);
    if (!coloured || look.colour < 0) continue;
    const auto pair = static_cast<short>(n + 1);
    init_pair(pair, look.colour, -1);
    attributes_[static_cast<std::size_t>(look.role)] |= COLOR_PAIR(pair);
  }
}

int Looks::of(Style style) const {
  const int attributes = attributes_[static_cast<std::size_t>(style.role)];
  return style.selected ? attributes | static_cast<int>(A_REVERSE) : attributes;
}

}  // namespace tidemark::tui
