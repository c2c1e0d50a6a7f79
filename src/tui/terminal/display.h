// The terminal: shows canvases, says which keys were pressed, and gives the terminal back as it was.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/result.h"
#include "tui/canvas.h"
#include "tui/key.h"

namespace tidemark::tui {

/// Whether stdin and stdout are a terminal on which a cursor can be moved.
[[nodiscard]] bool can_open_display();

/// One of a process. One thread.
class Display {
 public:
  /// Takes stdin and stdout over. Colours by the terminal, unless NO_COLOR is set; characters beyond ASCII where the
  /// locale is one of UTF-8. An error where the terminal's name means nothing to ncurses.
  static Result<std::unique_ptr<Display>> open();
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// One that fills the terminal as it is now.
  [[nodiscard]] Canvas canvas() const;
  /// Sends what has changed since the last one.
  void show(const Canvas& canvas);
  /// Sends everything with the next one.
  void redraw();
  /// After SIGWINCH.
  void resize();
  /// What was pressed; none where nothing was. Never waits, but for the rest of a key that came in several bytes: 25
  /// ms.
  std::optional<Key> read_key();

 private:
  Display() = default;
  struct State;
  std::unique_ptr<State> state_;
};

/// Descriptions of the usual terminals, for machines that have none: slim containers, and terminals newer than the
/// machine's data base.
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
