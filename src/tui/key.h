// A pressed key.
#pragma once

#include <string>

namespace tidemark::tui {

enum class KeyCode : unsigned char {
  text,  ///< a character, in `Key::text`
  enter,
  escape,
  backspace,
  tab,
  back_tab,
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end,
  redraw,  ///< Ctrl-L
  other,   ///< a key without a function
};

struct Key {
  KeyCode code = KeyCode::other;
  std::string text = {};  ///< of KeyCode::text: one character in UTF-8

  [[nodiscard]] bool is(char character) const {
    return code == KeyCode::text && text == std::string_view(&character, 1);
  }
};

}  // namespace tidemark::tui
