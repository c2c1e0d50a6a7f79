// The user's position in the program, and how keys change it. Independent of terminal and drivers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "tui/key.h"
#include "tui/view.h"

namespace tidemark::tui {

struct Message {
  std::string text;  ///< printable
  bool error = false;
};

struct State {
  std::size_t view = 0;
  std::array<ViewState, kViews> views;
  bool paused = false;                   ///< the shown data stays unchanged; monitoring continues
  bool help = false;                     ///< the list of keys is shown
  std::optional<std::string> file_name;  ///< being typed
  Message message;                       ///< at the bottom, until the next key
};

/// A request of the user that needs more than the state.
enum class Request : unsigned char {
  none,
  quit,
  redraw,  ///< the whole terminal
  pause,   ///< State::paused has changed
  mark,
  record,
  save,  ///< to State::file_name, which the caller clears
};

[[nodiscard]] Request handle_key(State& state, const Content& content, const Key& key);

}  // namespace tidemark::tui
