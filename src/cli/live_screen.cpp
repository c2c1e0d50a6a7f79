#include "cli/live_screen.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/standard_streams.h"
#include "report/common/follow.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kUsualRows = 24;
// Nothing wraps: what is too wide ends at the edge, so that every line is one row.
constexpr std::string_view kNoWrap = "\x1b[?7l";
constexpr std::string_view kWrap = "\x1b[?7h";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

bool can_move_the_cursor() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

Result<void> write(const std::string& bytes) {
  auto written = write_stdout(bytes);
  return written ? flush_stdout() : written;
}

}  // namespace

std::string screen_text(const std::string& text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t shown = lines < rows ? lines : std::max<std::size_t>(rows, 3) - 2;
  std::string screen(kHome);
  std::size_t at = 0;
  for (std::size_t line = 0; line < shown; ++line) {
    const std::size_t end = text.find('\n', at);
    screen.append(text, at, end - at).append(kClearLine).append("\n");
    at = end + 1;
  }
  if (shown < lines) screen.append(more_lines_text(lines - shown)).append(kClearLine).append("\n");
  return screen.append(kClearBelow);
}

LiveScreen::LiveScreen() : in_place_(can_move_the_cursor()) {}

LiveScreen::~LiveScreen() {
  if (!in_place_ || first_) return;
  static_cast<void>(write(std::string(kWrap).append(kHome).append(kClearBelow).append(latest_)));
}

Terminal LiveScreen::terminal() {
  return detect_terminal(STDOUT_FILENO);
}

Result<void> LiveScreen::show(std::string text) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  const bool first = std::exchange(first_, false);
  if (!in_place_) return write((first ? "" : "\n") + text);
  latest_ = std::move(text);
  return write(std::string(first ? kNoWrap : "") +
               screen_text(latest_, terminal_height(STDOUT_FILENO).value_or(kUsualRows)));
}

}  // namespace tidemark::cli
