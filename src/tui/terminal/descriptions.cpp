#include "tui/terminal/descriptions.h"

#include <string_view>

namespace tidemark::tui {

const TerminalDescription& description_for(const char* terminal) {
  const std::string_view name = terminal;
  if (name.starts_with("screen") || name.starts_with("tmux")) return kTerminalDescriptions[1];
  return kTerminalDescriptions[name == "linux" ? 2 : 0];
}

}  // namespace tidemark::tui
