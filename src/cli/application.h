// The program as a whole: from arguments to an exit code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace tidemark::cli {

/// The command line's grammar, and the function of each command.
struct Application {
  Application();
  Application(Application&&) noexcept;
  ~Application();

  std::unique_ptr<CLI::App> app;
  std::vector<std::unique_ptr<CommandLine>> command_lines;
  std::map<const CLI::App*, std::function<int()>> actions;  ///< by subcommand
};

Application make_application();

/// Parses and runs; returns the exit code. Prints errors on stderr.
int run_application(int argc, const char* const* argv);

/// The command most similar to a mistyped one, or "" if none is similar.
[[nodiscard]] std::string closest_command(const std::string& word);

/// fail() for a word that is no command, with the one that is closest.
int unknown_command(const std::string& word);

}  // namespace tidemark::cli
