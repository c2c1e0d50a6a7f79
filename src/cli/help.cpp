// tidemark help, and the text that --help prints.
#include "cli/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/application.h"
#include "cli/command.h"
#include "report/common/terminal.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 100;
constexpr std::size_t kUsual = 80;
constexpr std::size_t kNames = 26;  // maximum number of columns for names

/// The words of a text; "[default: python]" counts as one if it fits into a line.
std::vector<std::string> words_of(const std::string& text, std::size_t width) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const bool inside = !words.empty() && words.back().starts_with('[') && !words.back().ends_with(']');
    if (inside && words.back().size() + 1 + word.size() <= width) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

/// A text in lines of at most `width` columns, each but the first after `indent` spaces.
std::string wrapped(const std::string& all, std::size_t indent, std::size_t width) {
  std::string text;
  std::size_t column = indent;
  for (const std::string& word : words_of(all, width - indent)) {
    if (column != indent && column + 1 + word.size() > width) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column != indent) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text + "\n";
}

// The values of an option in lines of at most `width` columns, broken at |.
std::string broken_at_bars(std::string line, std::size_t width) {
  constexpr std::size_t kIndent = 10;
  std::string text;
  while (line.size() > width) {
    const std::size_t bar = line.rfind('|', width - 1);
    if (bar == std::string::npos || bar <= kIndent) break;
    text += line.substr(0, bar + 1) + "\n";
    line = std::string(kIndent, ' ') + line.substr(bar + 1);
  }
  return text + line;
}

// A line of a list; a description that does not fit beside its name begins below it.
std::string described(const std::string& name, const std::string& description, std::size_t names, std::size_t width) {
  const std::size_t indent = std::min(names, width / 3);
  std::string text = broken_at_bars("  " + name, width);
  text += text.size() + 2 > indent ? "\n" + std::string(indent, ' ') : std::string(indent - text.size(), ' ');
  return text + wrapped(description, indent, width);
}

// The first options are below `heading`, options of another group below its name.
std::string options_text(const std::string& heading, const std::vector<OptionModel>& options, std::size_t width) {
  if (options.empty()) return {};
  std::string text = fmt::format("\n{}:\n", heading);
  std::string group = options.front().group;
  for (const OptionModel& option : options) {
    if (option.group != group) text += "\n" + wrapped(option.group + ":", 0, width);
    group = option.group;
    const bool only_long = !option.names.empty() && option.names.front().starts_with("--");
    text += described((only_long ? "    " : "") + names_of(option), description_of(option), kNames, width);
  }
  return text;
}

std::string commands_text(const std::vector<CommandModel>& commands, std::size_t width) {
  std::string text;
  std::string group;
  std::size_t longest = 0;
  for (const CommandModel& command : commands) longest = std::max(longest, command.name.size());
  for (const CommandModel& command : commands) {
    if (command.group != group) text += fmt::format("\n{}:\n", command.group);
    group = command.group;
    text += described(command.name, command.description, longest + 4, width);
  }
  return text;
}

// Paragraphs are wrapped; indented lines, which are examples and lists, stay unchanged.
std::string footer_text(const std::string& footer, std::size_t width) {
  std::string text;
  std::istringstream stream(footer);
  for (std::string line; std::getline(stream, line);) {
    text += line.starts_with(' ') ? line + "\n" : wrapped(line, 0, width);
  }
  return text;
}

// Text as roff shows it: hyphens that can be copied, and no line that begins like a request.
std::string roff(std::string_view text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char letter : text) {
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else if (letter == '|') {
      escaped += "|\\:";  // a line may end behind it
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string roff_synopsis(const CommandModel& program) {
  std::string text;
  for (const CommandModel& command : program.commands) {
    const std::string name = program.name + " " + command.name;
    text += (text.empty() ? "" : ".br\n") + bold(name) + roff(command.usage.substr(name.size())) + "\n";
  }
  return text;
}

std::string roff_options(const std::vector<OptionModel>& list) {
  std::string text;
  std::string group;
  for (const OptionModel& option : list) {
    if (!group.empty() && !option.names.empty() && option.group != group) {
      text += fmt::format(".PP\n{}:\n", roff(option.group));
    }
    if (!option.names.empty()) group = option.group;
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
    if (option.names.empty()) {
      names = "\\fI" + roff(option.argument) + "\\fR";
    } else if (!option.value.empty()) {
      names += " \\fI" + roff(option.value) + "\\fR";
    }
    text += fmt::format(".TP\n{}\n{}\n", names, roff(description_of(option)));
  }
  return text;
}

// Paragraphs, and indented lines as they are.
std::string roff_footer(const std::string& footer) {
  std::string text;
  bool as_they_are = false;
  bool new_paragraph = true;
  std::istringstream stream(footer);
  for (std::string line; std::getline(stream, line);) {
    const bool indented = line.starts_with(' ');
    if (as_they_are && !indented) text += ".fi\n";
    if (new_paragraph && !line.empty()) text += ".PP\n";
    if (indented && !as_they_are) text += ".nf\n";
    if (!line.empty()) text += roff(line) + "\n";
    as_they_are = indented;
    new_paragraph = line.empty();
  }
  return text + (as_they_are ? ".fi\n" : "");
}

// Text of a cell of a table: Markdown's special characters are escaped, except in `code`.
std::string cell(std::string_view text) {
  std::string escaped;
  bool code = false;
  for (const char letter : text) {
    if (letter == '`') code = !code;
    if (letter == '|' || (!code && (letter == '*' || letter == '<'))) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string code_cell(const std::string& text) {
  return cell("`" + text + "`");
}

// A long list of words is in the description, so that the column of names stays narrow.
bool has_long_list(const OptionModel& option) {
  constexpr std::size_t kMaxValueColumns = 30;
  return option.value.size() > kMaxValueColumns && !option.choices().empty();
}

std::string markdown_option(const OptionModel& option) {
  if (option.names.empty()) {
    return fmt::format("| {} | {} | |\n", code_cell(option.argument + (option.repeated ? "..." : "")),
                       cell(option.description));
  }
  const bool long_list = has_long_list(option);
  std::string names;
  for (const std::string& name : option.names) {
    const bool last = &name == &option.names.back();
    const std::string value = !last || option.value.empty() ? "" : " " + (long_list ? "NAME" : option.value);
    names += (names.empty() ? "" : ", ") + code_cell(name + value);
  }
  std::string description = cell(option.description);
  if (long_list) description += fmt::format(". One of `{}`", fmt::join(option.choices(), "`, `"));
  return fmt::format("| {} | {} | {} |\n", names, description, option.required ? "required" : cell(option.initial));
}

// A table for each group of options; the first one has the arguments too.
std::string markdown_options(const CommandModel& command) {
  std::vector<OptionModel> all = command.arguments;
  for (const OptionModel& option : command.options) {
    if (option.names.back() != "--help") all.push_back(option);
  }
  std::string text;
  std::string group;
  for (const OptionModel& option : all) {
    const bool other = !option.names.empty() && option.group != group && !group.empty();
    if (!option.names.empty()) group = option.group;
    if (other) text += fmt::format("\n{}:\n\n", option.group);
    if (other || text.empty()) text += "| option | meaning | default |\n|---|---|---|\n";
    text += markdown_option(option);
  }
  return text;
}

// The indented lines below "Examples:", without their indent.
std::string examples_of(const std::string& footer) {
  std::string text;
  bool examples = false;
  std::istringstream stream(footer);
  for (std::string line; std::getline(stream, line);) {
    if (examples && !line.starts_with("  ")) break;
    if (examples) text += line.substr(2) + "\n";
    if (line == "Examples:") examples = true;
  }
  return text;
}

std::string markdown_of_command(const CommandModel& command) {
  const std::string options = markdown_options(command);
  const std::string examples = examples_of(command.footer);
  return fmt::format("```text\n{}\n```\n", command.usage) + (options.empty() ? "" : "\n" + options) +
         (examples.empty() ? "" : fmt::format("\nExamples:\n\n```text\n{}```\n", examples));
}

std::string markdown_of_commands(const CommandModel& program) {
  std::string text = "| | command | what it does |\n|---|---|---|\n";
  std::string group;
  for (const CommandModel& command : program.commands) {
    text += fmt::format("| {} | [`{}`](commands/{}.md) | {} |\n", command.group == group ? "" : command.group,
                        command.name, command.name, cell(command.description));
    group = command.group;
  }
  return text;
}

std::string roff_commands(const CommandModel& program) {
  std::string text;
  for (const CommandModel& command : program.commands) {
    std::vector<OptionModel> own = command.arguments;
    for (const OptionModel& option : command.options) {
      if (option.names.back() != "--help") own.push_back(option);
    }
    text += fmt::format(".SS \"{} {}\"\n{}.\n{}{}", program.name, command.name, roff(command.description),
                        roff_options(own), roff_footer(command.footer));
  }
  return text;
}

}  // namespace

std::string names_of(const OptionModel& option) {
  if (option.names.empty()) return option.argument;
  return fmt::format("{}{}{}", fmt::join(option.names, ", "), option.value.empty() ? "" : " ", option.value);
}

std::string description_of(const OptionModel& option) {
  if (option.required && !option.names.empty()) return option.description + " [required]";
  return option.description + (option.initial.empty() ? "" : fmt::format(" [default: {}]", option.initial));
}

std::string help_text(const CommandModel& command, std::size_t width) {
  return wrapped(command.description, 0, width) + "\nUsage: " + wrapped(command.usage, 7, width) +
         options_text("Arguments", command.arguments, width) + options_text("Options", command.options, width) +
         commands_text(command.commands, width) + "\n" + footer_text(command.footer, width);
}

std::string help_markdown(const CommandModel& command) {
  return command.commands.empty() ? markdown_of_command(command) : markdown_of_commands(command);
}

std::size_t help_width(int descriptor) {
  return std::clamp(terminal_width(descriptor).value_or(kUsual), kNarrowest, kWidest);
}

int print_help(const CommandModel& command) {
  return print(help_text(command, help_width(STDOUT_FILENO)));
}

std::function<int()> setup_help(CommandLine& app) {
  struct HelpOptions {
    std::string command;
    std::string to = "text";
  };
  auto options = std::make_shared<HelpOptions>();
  std::string names;
  for (const Command& command : commands()) {
    if (!command.group.empty()) names += (names.empty() ? "" : "|") + command.name;
  }
  app.add_option("COMMAND", options->command, "Command to show the help of")->type_name(names);
  app.add_option("--to", options->to, "Text, or the tables of options that the documentation has")
      ->one_of("text|markdown");
  app.footer(
      "Without a command: the list of commands.\n\n"
      "Examples:\n"
      "  tidemark help\n"
      "  tidemark help run");
  return [options, &app] {
    const auto show = [&](const CommandModel& model) {
      return options->to == "markdown" ? print(help_markdown(model)) : print_help(model);
    };
    const CommandModel program = command_model(app.program());
    if (options->command.empty()) return show(program);
    const auto found = std::find_if(program.commands.begin(), program.commands.end(),
                                    [&](const CommandModel& command) { return command.name == options->command; });
    return found == program.commands.end() ? unknown_command(options->command) : show(*found);
  };
}

std::string manual_page(const CommandModel& program, std::string page) {
  for (const auto& [name, text] :
       {std::pair("@SYNOPSIS@\n", roff_synopsis(program)), std::pair("@OPTIONS@\n", roff_options(program.options)),
        std::pair("@COMMANDS@\n", roff_commands(program))}) {
    const std::size_t at = page.find(name);
    if (at != std::string::npos) page.replace(at, std::string_view(name).size(), text);
  }
  return page;
}

}  // namespace tidemark::cli
