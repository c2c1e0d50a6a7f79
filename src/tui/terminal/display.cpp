#include "tui/terminal/display.h"

#include <langinfo.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string>
#include <string_view>

#include "report/common/terminal.h"

// Without its macros, which have names such as `move` and `erase`.
#define NCURSES_NOMACROS 1  // NOLINT
#define NCURSES_WIDECHAR 1  // NOLINT
#include <curses.h>
#undef OK

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

// Styles of roles on a terminal: with colours, or without them by bold, dim and reversed text.
class Looks {
 public:
  Looks() = default;
  /// Construct after the terminal was opened. `colours`: whether they are requested; the terminal may have none.
  explicit Looks(bool colours);

  /// Attributes of ncurses.
  [[nodiscard]] int of(Style style) const;

 private:
  std::array<int, 11> attributes_{};  // by Role
};

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

constexpr int kEscapeMilliseconds = 25;

// Takes the size of the terminal, if it reports one.
void fit_to_terminal() {
  const auto columns = terminal_width(STDOUT_FILENO);
  const auto rows = terminal_height(STDOUT_FILENO);
  if (columns && rows) resizeterm(static_cast<int>(*rows), static_cast<int>(*columns));
}

// ncurses' own answer to a terminal without a description would be to end the program: newterm() returns null instead.
SCREEN* open_terminal() {
  use_env(false);  // 24 by 80 at first: the environment could request gigabytes
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (screen != nullptr) return screen;
  const char* name = std::getenv("TERM");
  const TerminalDescription& description = description_for(name == nullptr ? "" : name);
  ::setenv("TERMINFO", description.hex, 1);
  ::setenv("TERM", description.name, 1);
  return newterm(nullptr, stdout, stdin);
}

KeyCode code_of(int key) {
  switch (key) {
    case KEY_ENTER:
      return KeyCode::enter;
    case KEY_BACKSPACE:
      return KeyCode::backspace;
    case KEY_BTAB:
      return KeyCode::back_tab;
    case KEY_UP:
      return KeyCode::up;
    case KEY_DOWN:
      return KeyCode::down;
    case KEY_LEFT:
      return KeyCode::left;
    case KEY_RIGHT:
      return KeyCode::right;
    case KEY_PPAGE:
      return KeyCode::page_up;
    case KEY_NPAGE:
      return KeyCode::page_down;
    case KEY_HOME:
      return KeyCode::home;
    case KEY_END:
      return KeyCode::end;
    default:
      return KeyCode::other;
  }
}

Key control_key(wint_t character) {
  switch (character) {
    case '\r':
    case '\n':
      return {KeyCode::enter};
    case '\t':
      return {KeyCode::tab};
    case 0x1B:
      return {KeyCode::escape};
    case '\b':
    case 0x7F:
      return {KeyCode::backspace};
    case 'L' & 0x1F:
      return {KeyCode::redraw};
    default:
      return {KeyCode::other};
  }
}

std::string utf8_of(wint_t character) {
  std::array<char, MB_LEN_MAX> bytes{};
  std::mbstate_t state{};
  const std::size_t count = std::wcrtomb(bytes.data(), static_cast<wchar_t>(character), &state);
  return count == static_cast<std::size_t>(-1) ? std::string() : std::string(bytes.data(), count);
}

// The character of a cell, or "?" if the C library, whose tables ncurses uses, assigns it another width than this
// program does: the rest of the line would be shifted.
std::string drawable(const Canvas& canvas, std::size_t x, std::size_t y) {
  const std::string& text = canvas.at(x, y).text;
  if (text.size() <= 1) return text;
  const std::size_t columns = x + 1 < canvas.width() && canvas.at(x + 1, y).text.empty() ? 2 : 1;
  std::mbstate_t state{};
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    wchar_t character = 0;
    const std::size_t bytes = std::mbrtowc(&character, text.data() + at, text.size() - at, &state);
    const int of_character = bytes == 0 || bytes > text.size() ? -1 : ::wcwidth(character);
    if (of_character < 0) return std::string(columns, '?');
    width += of_character;
    at += bytes;
  }
  return static_cast<std::size_t>(width) == columns ? text : std::string(columns, '?');
}

}  // namespace

const TerminalDescription& description_for(const char* terminal) {
  const std::string_view name = terminal;
  if (name.starts_with("screen") || name.starts_with("tmux")) return kTerminalDescriptions[1];
  return kTerminalDescriptions[name == "linux" ? 2 : 0];
}

struct Display::State {
  SCREEN* screen = nullptr;
  bool unicode = false;
  Looks looks;
};

bool can_open_display() {
  const char* name = std::getenv("TERM");
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && name != nullptr && *name != '\0' &&
         std::strcmp(name, "dumb") != 0;
}

Result<std::unique_ptr<Display>> Display::open() {
  std::setlocale(LC_CTYPE, "");
  SCREEN* screen = open_terminal();
  if (screen == nullptr)
    return Error{"ncurses cannot use this terminal; set TERM to what it is, such as xterm-256color"};
  std::unique_ptr<Display> display(new Display);
  display->state_ = std::make_unique<State>();
  display->state_->screen = screen;
  display->state_->unicode = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  fit_to_terminal();
  set_escdelay(kEscapeMilliseconds);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, true);
  nodelay(stdscr, true);
  leaveok(stdscr, true);
  curs_set(0);
  const char* no_color = std::getenv("NO_COLOR");
  display->state_->looks = Looks(no_color == nullptr || *no_color == '\0');
  return display;
}

Display::~Display() {
  endwin();
  delscreen(state_->screen);
}

Canvas Display::canvas() const {
  return {static_cast<std::size_t>(getmaxx(stdscr)), static_cast<std::size_t>(getmaxy(stdscr)), state_->unicode};
}

void Display::show(const Canvas& canvas) {
  for (std::size_t y = 0; y < canvas.height(); ++y) {
    wmove(stdscr, static_cast<int>(y), 0);
    for (std::size_t x = 0; x < canvas.width();) {
      // As many cells at once as look alike.
      const Style style = canvas.at(x, y).style;
      std::string run;
      std::size_t next = x;
      while (next < canvas.width() && canvas.at(next, y).style == style) run += drawable(canvas, next++, y);
      wattrset(stdscr, state_->looks.of(style));
      mvwaddnstr(stdscr, static_cast<int>(y), static_cast<int>(x), run.data(), static_cast<int>(run.size()));
      x = next;
    }
  }
  wrefresh(stdscr);
}

void Display::redraw() {
  clearok(curscr, true);
}

void Display::resize() {
  fit_to_terminal();
  redraw();
}

std::optional<Key> Display::read_key() {
  wint_t character = 0;
  const int kind = wget_wch(stdscr, &character);
  if (kind == ERR) return std::nullopt;
  if (kind == KEY_CODE_YES) return Key{code_of(static_cast<int>(character))};
  if (character < 0x20 || character == 0x7F) return control_key(character);
  return Key{KeyCode::text, utf8_of(character)};
}

}  // namespace tidemark::tui
