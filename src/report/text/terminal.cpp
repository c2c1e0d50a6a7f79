#include "report/text/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace tidemark {

Terminal detect_terminal(int descriptor) {
  Terminal terminal;
  if (isatty(descriptor) == 0) return terminal;
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  terminal.colour = (no_color == nullptr || *no_color == '\0') && kind != nullptr && std::string_view(kind) != "dumb";
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) terminal.width = size.ws_col;
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
