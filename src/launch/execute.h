// Starting a program in a child process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace tidemark {

struct Command {
  std::vector<std::string> words;             ///< the program and its arguments
  std::vector<std::string> environment = {};  ///< variables ("NAME=value") that are set for it
  std::string file = {};                      ///< what is executed where it is not the first word, looked up in PATH
};

/// Starts a program. `prepare` runs in the child, which shares the memory of this process until then: it may make
/// system calls and nothing else. Takes no descriptor. 0, or the error as posix_spawnp() returns it.
[[nodiscard]] int execute(const Command& command, const std::function<void()>& prepare, pid_t& pid);

}  // namespace tidemark
