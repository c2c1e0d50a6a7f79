// Signals as something to wait for, so that the terminal is given back before any of them ends the program.
#pragma once

#include <signal.h>

#include <optional>

#include "base/scoped_fd.h"

namespace tidemark::tui {

/// While it lives, signals that end the program, SIGWINCH and SIGCONT are taken from descriptor() by take(). Threads
/// that are started meanwhile do not get them either.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Readable when there is a signal; negative if the kernel provides no descriptor.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The next signal; nullopt if there is none. Never waits.
  std::optional<int> take();

 private:
  sigset_t before_;
  ScopedFd descriptor_;
};

/// Ends this process with the signal's default action; returns if that does not end it.
void die_of(int signal);

}  // namespace tidemark::tui
