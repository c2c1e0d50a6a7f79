#include "cli/application.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/command_model.h"
#include "cli/help.h"

namespace tidemark::cli {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

bool is_command(const std::string& word) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& command) { return word == command.name; });
}

// The help of the command that was parsed, or of the program.
CommandModel asked_for(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return command_model(parsed.empty() ? app : *parsed.back());
}

}  // namespace

Application::Application() = default;
Application::Application(Application&&) noexcept = default;
Application::~Application() = default;

std::string closest_command(const std::string& word) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const Command& command : commands()) {
    const std::size_t distance = edit_distance(word, command.name);
    if (distance >= least || command.group.empty()) continue;
    least = distance;
    best = command.name;
  }
  return best;
}

int unknown_command(const std::string& word) {
  const std::string guess = closest_command(word);
  const std::string hint = guess.empty() ? "see `tidemark --help`" : fmt::format("did you mean '{}'?", guess);
  return fail(fmt::format("unknown command '{}'; {}", word, hint));
}

Application make_application() {
  Application application;
  application.app =
      std::make_unique<CLI::App>("Tidemark shows where GPU memory goes in deep-learning training.", "tidemark");
  CLI::App& app = *application.app;
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", "tidemark " TIDEMARK_VERSION, "Print the version");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tidemark run -- python train.py               # writes train-DATE-TIME.tide\n"
      "  tidemark summary train-20261120-221500.tide   # peak memory and its call sites\n"
      "\nSee `tidemark help COMMAND` for the options of a command.");
  for (const Command& command : commands()) {
    CLI::App* subcommand = app.add_subcommand(command.name, command.description);
    subcommand->group(command.group);
    application.command_lines.push_back(std::make_unique<CommandLine>(*subcommand));
    application.actions[subcommand] = command.setup(*application.command_lines.back());
  }
  return application;
}

int run_application(int argc, const char* const* argv) {
  try {
    const Application application = make_application();
    CLI::App& app = *application.app;
    if (argc < 2) {
      write_stderr({help_text(command_model(app), help_width(STDERR_FILENO))});
      return kError;
    }
    if (argv[1][0] != '-' && !is_command(argv[1])) return unknown_command(argv[1]);
    try {
      const std::vector<std::string> words = protected_words(argc, argv);
      std::vector<const char*> arguments;
      arguments.reserve(words.size());
      for (const std::string& word : words) arguments.push_back(word.c_str());
      app.parse(argc, arguments.data());
    } catch (const CLI::CallForHelp&) {
      return print_help(asked_for(app));
    } catch (const CLI::Success& answer) {  // --version
      return print(std::string(answer.what()) + "\n");
    } catch (const CLI::ParseError& error) {
      const std::string command = is_command(argv[1]) ? fmt::format(" {}", argv[1]) : "";
      return fail(fmt::format("{}; see `tidemark{} --help`", error.what(), command));
    }
    for (const auto& [subcommand, action] : application.actions) {
      if (subcommand->parsed()) return action();
    }
    return kError;
  } catch (const std::bad_alloc&) {
    say("out of memory; `tidemark summary` needs less memory than the other commands");
  } catch (const std::exception& error) {
    write_stderr({"tidemark: internal error: ", error.what(), "\n"});
  }
  return kError;
}

}  // namespace tidemark::cli
