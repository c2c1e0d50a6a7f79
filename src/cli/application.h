// The program as a whole: from arguments to an exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace tidemark::cli {

/// The command line's grammar, and what each command runs.
struct Application {
  std::unique_ptr<CLI::App> app;
  std::map<const CLI::App*, std::function<int()>> actions;  ///< by subcommand
};

Application make_application();

/// Parses and runs; returns the exit code. Prints errors on stderr.
int run_application(int argc, const char* const* argv);

/// The command whose name is closest to a mistyped one, or "" when none is close.
[[nodiscard]] std::string closest_command(const std::string& word);

}  // namespace tidemark::cli
