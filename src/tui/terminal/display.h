// The terminal: shows canvases, reads keys, and restores the terminal at the end.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/result.h"
#include "tui/canvas.h"
#include "tui/key.h"

namespace tidemark::tui {

/// Whether stdin and stdout are a terminal with a movable cursor.
[[nodiscard]] bool can_open_display();

/// One of a process. One thread.
class Display {
 public:
  /// Takes over stdin and stdout. Colours depend on the terminal, unless NO_COLOR is set; characters beyond ASCII need
  /// a UTF-8 locale. Fails if ncurses does not know the terminal's name.
  static Result<std::unique_ptr<Display>> open();
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// One that fills the terminal as it is now.
  [[nodiscard]] Canvas canvas() const;
  /// Sends the changes since the last canvas.
  void show(const Canvas& canvas);
  /// Sends everything with the next one.
  void redraw();
  /// After SIGWINCH.
  void resize();
  /// The pressed key; nullopt if there is none. Never waits, except for the rest of a key of several bytes: 25 ms.
  std::optional<Key> read_key();

 private:
  Display() = default;
  struct State;
  std::unique_ptr<State> state_;
};

/// Descriptions of the usual terminals, for machines without them: slim containers, and terminals newer than the
/// machine's database.
struct TerminalDescription {
  const char* name;  ///< as in TERM
  const char* hex;   ///< as ncurses takes it from TERMINFO, beginning with "hex:"
};

/// xterm-256color, screen-256color, linux. Made by the build from the descriptions that ncurses brings.
extern const std::array<TerminalDescription, 3> kTerminalDescriptions;

/// The description for a terminal of this name: tmux and screen are one family; unknown terminals count as xterm.
[[nodiscard]] const TerminalDescription& description_for(const char* terminal);

}  // namespace tidemark::tui
