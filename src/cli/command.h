// The contract of a command, and the list of them. A new command is one file and one line in commands.cpp; commands for
// analyses come from the list of analyses.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/command_line.h"

namespace tidemark::cli {

/// Exit codes of every command. `tidemark run` exits with the program's own code instead.
inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;  ///< a --fail-... option found what it checks for, or `doctor` found a problem
inline constexpr int kError = 2;

struct Command {
  std::string name;
  /// Heading in `tidemark --help`: "Record", "Read", "Watch", "Machine", "Other"; "": not for people.
  std::string group;
  std::string description;  ///< one line
  /// Adds options, positionals and a footer with examples to `app`; returns a function that runs after parsing and
  /// returns the exit code. The closure owns its options.
  std::function<std::function<int()>(CommandLine& app)> setup;
};

/// In the order of help.
std::span<const Command> commands();

/// "tidemark: MESSAGE" on stderr; returns kError.
int fail(const std::string& message);

/// Writes to stdout; kOk, or fail() when it cannot be written.
int print(const std::string& bytes);

}  // namespace tidemark::cli
