#include "report/common/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/standard_streams.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

class Line {
 public:
  Line(const char* doing, std::string name) : doing_(doing), name_(std::move(name)) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (shown_) write_stderr({"\r\x1b[K"});
  }

  void show(std::uint64_t done, std::uint64_t all) {
    const Clock::time_point now = Clock::now();
    if (now < next_ || all == 0) return;
    next_ = now + std::chrono::milliseconds(200);
    shown_ = true;
    write_stderr({fmt::format("\r{} {}: {}%\x1b[K", doing_, name_, done * 100 / all)});
  }

 private:
  const char* doing_;
  std::string name_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
  bool shown_ = false;
};

}  // namespace

std::optional<std::size_t> terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return std::min<std::size_t>(size.ws_col, kMaxTerminalColumns);
}

std::optional<std::size_t> terminal_height(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return std::min<std::size_t>(size.ws_row, kMaxTerminalRows);
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

Progress make_progress(const std::string& path, const char* doing) {
  if (isatty(STDERR_FILENO) == 0) return {};
  auto line = std::make_shared<Line>(doing, fit(printable(path), 50));
  return [line](std::uint64_t done, std::uint64_t all) { line->show(done, all); };
}

}  // namespace tidemark
