// Descriptions of the usual terminals, for machines that have none: slim containers, and terminals newer than the
// machine's data base.
#pragma once

#include <array>

namespace tidemark::tui {

struct TerminalDescription {
  const char* name;  ///< as in TERM
  const char* hex;   ///< as ncurses takes it from TERMINFO, beginning with "hex:"
};

/// xterm-256color, screen-256color, linux. Made by the build from the descriptions that ncurses brings.
extern const std::array<TerminalDescription, 3> kTerminalDescriptions;

/// The one to take for a terminal of this name: tmux and screen are of one family; whatever is not known talks as
/// xterm.
[[nodiscard]] const TerminalDescription& description_for(const char* terminal);

}  // namespace tidemark::tui
