// The program: full screen on a terminal, else a prompt that reads commands line by line.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "live/monitor.h"

namespace tidemark::screen {

struct ProgramOptions {
  MonitorOptions monitor = {};
  std::size_t first_view = 0;  ///< position in views()
};

/// Full screen, until a key ends it: the exit code 0. A signal that ends it ends this process, after the terminal was
/// given back. Needs can_open_display().
[[nodiscard]] Result<int> run_full_screen(const ProgramOptions& options);

/// Reads commands from stdin until `quit` or its end, and prints what they ask for. The exit code: 2 where one of them
/// failed.
[[nodiscard]] Result<int> run_prompt(const ProgramOptions& options);

}  // namespace tidemark::screen
