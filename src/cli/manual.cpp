#include "cli/manual.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help.h"

namespace tidemark::cli {
namespace {

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
