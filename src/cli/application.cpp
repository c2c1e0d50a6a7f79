#include "cli/application.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/command_model.h"
#include "cli/help.h"
#include "query/words/printable.h"

namespace tidemark::cli {
namespace {

bool is_command(const std::string& word) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& command) { return word == command.name; });
}

// The help of the command that was parsed, or of the program.
CommandModel asked_for(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return command_model(parsed.empty() ? app : *parsed.back());
}

bool is_recording_name(std::string_view word) {
  constexpr std::string_view kEndings[] = {".tide", ".pickle", ".pkl", ".pickle.gz", ".pickle.xz", ".pickle.zst"};
  return std::ranges::any_of(kEndings, [word](std::string_view ending) { return word.ends_with(ending); });
}

// What people type for a command that has another name.
struct OtherName {
  std::string_view typed;
  std::string_view command;
};
constexpr OtherName kOtherNames[] = {
    {"watch", "top"},   {"monitor", "top"},    {"ps", "top"},           {"record", "run"},      {"trace", "run"},
    {"mem", "summary"}, {"memory", "summary"}, {"snapshot", "summary"}, {"stats", "summary"},   {"view", "report"},
    {"html", "report"}, {"diff", "compare"},   {"fit", "plan"},         {"advice", "patterns"}, {"tui", "interactive"}};

// The command that somebody meant who typed a word that is none; empty: unknown.
std::string meant_command(const std::string& word) {
  if (is_recording_name(word)) return "tidemark summary " + shell_word(word);
  if (word.ends_with(".py")) return "tidemark run -- python " + shell_word(word);
  const auto* const other = std::ranges::find(kOtherNames, word, &OtherName::typed);
  if (other != std::end(kOtherNames)) return fmt::format("tidemark {}", other->command);
  const std::string guess = closest_command(word);
  return guess.empty() ? "" : "tidemark " + guess;
}

// The first example in a command's help; empty: it has none.
std::string first_example(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command :
       app.get_subcommands([&](const CLI::App* known) { return known->get_name() == name; })) {
    const std::string footer = command->get_footer();
    const std::size_t begin = footer.find("\n  tidemark ");
    if (begin == std::string::npos) return "";
    return footer.substr(begin + 3, footer.find('\n', begin + 3) - begin - 3);
  }
  return "";
}

// Commands of the same question: one reads a recording, the other watches a running process.
struct Counterpart {
  std::string_view reads;
  std::string_view watches;
  bool reads_only_files = true;  // its --pid follows no recording
};
constexpr Counterpart kCounterparts[] = {
    {"leaks", "leak"},         {"fragmentation", "fragment"},     {"explain", "oom"},
    {"summary", "top", false}, {"summary", "interactive", false}, {"timeline", "profile", false}};

// "tidemark leak run.tide" and "tidemark leaks --pid 4711"; empty: neither.
std::string other_command(int argc, const char* const* argv) {
  const std::string_view command = argv[1];
  for (const auto& [reads, watches, reads_only_files] : kCounterparts) {
    for (int n = 2; n < argc; ++n) {
      const std::string_view word = argv[n];
      if (command == watches && is_recording_name(word)) {
        return fmt::format("`tidemark {}` watches running processes; to read a recording: tidemark {} {}", watches,
                           reads, shell_word(word));
      }
      if (command == reads && reads_only_files && (word == "--pid" || word.starts_with("--pid="))) {
        return fmt::format("`tidemark {}` reads recordings; to watch a running process: tidemark {} --pid PID", reads,
                           watches);
      }
    }
  }
  return "";
}

// "--pid needs a value: --pid PID" for CLI11's "--pid: 1 required PID missing".
std::string parse_problem(const CLI::ParseError& error) {
  std::string what = error.what();
  const std::string_view missing = ": 1 required ";
  const std::size_t begin = what.find(missing);
  if (begin == std::string::npos || !what.ends_with(" missing")) return what;
  const std::string option = what.substr(0, begin);
  const std::size_t type = begin + missing.size();
  return fmt::format("{0} needs a value: {0} {1}", option, what.substr(type, what.size() - type - 8));
}

// Before CLI11 parses: of a command that ends with a program it takes the first unknown option for the program.
std::string unknown_option(const CLI::App& app, int argc, const char* const* argv) {
  for (const CLI::App* command :
       app.get_subcommands([&](const CLI::App* known) { return known->get_name() == argv[1]; })) {
    if (!command->get_group().empty()) {
      return command_model(*command).unknown_option({argv + 2, argv + argc});
    }
  }
  return "";
}

}  // namespace

Application::Application() = default;
Application::Application(Application&&) noexcept = default;
Application::~Application() = default;

std::string closest_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (!command.group.empty()) names.push_back(command.name);
  }
  return closest_word(word, names);
}

int unknown_command(const std::string& word) {
  const std::string meant = meant_command(word);
  const std::string hint = meant.empty() ? "see `tidemark --help`" : fmt::format("did you mean `{}`?", meant);
  return fail(fmt::format("unknown command '{}'; {}", word, hint));
}

Application make_application() {
  Application application;
  application.app =
      std::make_unique<CLI::App>("Tidemark shows where GPU memory goes in deep-learning training.", "tidemark");
  CLI::App& app = *application.app;
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", "tidemark " TIDEMARK_VERSION, "Print the version");
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
    if (const std::string other = other_command(argc, argv); !other.empty()) return fail(other);
    if (const std::string problem = unknown_option(app, argc, argv); !problem.empty()) {
      return fail(fmt::format("{}; see `tidemark {} --help`", problem, argv[1]));
    }
    try {
      std::vector<std::string> words = protected_words(argc, argv);
      for (std::size_t n = 0; n < commands().size(); ++n) {
        if (commands()[n].name == words[1]) application.command_lines[n]->take_program(words);
      }
      std::vector<const char*> arguments;
      arguments.reserve(words.size());
      for (const std::string& word : words) arguments.push_back(word.c_str());
      app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
      return print_help(asked_for(app));
    } catch (const CLI::Success& answer) {  // --version
      return print(std::string(answer.what()) + "\n");
    } catch (const CLI::ParseError& error) {
      const std::string command = is_command(argv[1]) ? fmt::format(" {}", argv[1]) : "";
      const std::string example = error.get_name() == "RequiredError" ? first_example(app, argv[1]) : "";
      if (!example.empty()) return fail(fmt::format("{}; for example: {}", parse_problem(error), example));
      return fail(fmt::format("{}; see `tidemark{} --help`", parse_problem(error), command));
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
