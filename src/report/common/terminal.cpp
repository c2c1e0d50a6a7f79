#include "report/common/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace tidemark {

std::optional<std::size_t> terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::optional<std::size_t> terminal_height(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return size.ws_row;
}

Terminal detect_terminal(int descriptor) {
  Terminal terminal;
  if (isatty(descriptor) == 0) return terminal;
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  terminal.colour = (no_color == nullptr || *no_color == '\0') && kind != nullptr && std::string_view(kind) != "dumb";
  terminal.width = terminal_width(descriptor).value_or(terminal.width);
  return terminal;
}

std::string paint(const Terminal& terminal, Tone tone, std::string_view text) {
  if (!terminal.colour) return std::string(text);
  const char* code = "1";  // heading: bold
  if (tone == Tone::quiet) code = "2";
  if (tone == Tone::warning) code = "33";
  if (tone == Tone::error) code = "31";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace tidemark
