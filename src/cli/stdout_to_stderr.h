// Stdout for a result alone, while a program runs.
#pragma once

#include <unistd.h>

#include "base/scoped_fd.h"

namespace tidemark::cli {

/// Sends what this process, and a program that it starts, writes to stdout to stderr while it exists.
class StdoutToStderr {
 public:
  StdoutToStderr() : kept_(::dup(STDOUT_FILENO)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() { ::dup2(kept_.get(), STDOUT_FILENO); }

 private:
  ScopedFd kept_;
};

}  // namespace tidemark::cli
