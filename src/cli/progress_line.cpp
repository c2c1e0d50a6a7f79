#include "cli/progress_line.h"

#include <unistd.h>

#include "base/standard_streams.h"
#include "query/words/printable.h"
#include "report/common/terminal.h"

namespace tidemark::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{500};

}  // namespace

ProgressLine::ProgressLine()
    : columns_(::isatty(STDERR_FILENO) == 0 ? 0 : terminal_width(STDERR_FILENO).value_or(80)) {}

ProgressLine::~ProgressLine() {
  erase();
}

void ProgressLine::erase() const {
  if (columns_ > 0) write_stderr({"\r\x1b[K"});
}

void ProgressLine::show(const std::function<std::string()>& text) {
  const auto now = std::chrono::steady_clock::now();
  if (columns_ == 0 || now < next_) return;
  next_ = now + kBetweenLines;
  write_stderr({"\r", fit(text(), columns_ - 1), "\x1b[K"});
}

}  // namespace tidemark::cli
