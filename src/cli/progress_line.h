// The line that a terminal shows while a command watches something.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace tidemark::cli {

/// One line on a terminal, which is erased at the end. Nothing if stderr is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows the text, which has to be printable; it is made at most twice a second.
  void show(const std::function<std::string()>& text);
  /// Before other output to the terminal.
  void erase() const;

 private:
  std::size_t columns_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace tidemark::cli
