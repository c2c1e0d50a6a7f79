#include "cli/completion.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/reading.h"

namespace tidemark::cli {
namespace {

std::string quote(std::string_view text, std::string_view quoted_quote) {
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted += quoted_quote;
    } else {
      quoted += letter;
    }
  }
  return quoted + "'";
}
std::string shell_quote(std::string_view text) {
  return quote(text, "'\\''");
}
std::string fish_quote(std::string_view text) {
  return quote(text, "\\'");
}

std::string choices_of(const OptionModel& option) {
  return fmt::format("{}", fmt::join(option.choices(), " "));
}

std::string all_names(const CommandModel& command) {
  std::string names;
  for (const OptionModel& option : command.options) {
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

// Inside an _arguments specification, colons and brackets separate parts.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (std::string_view(":[]\\").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

}  // namespace

std::string bash_completion(const CommandModel& program) {
  std::string words;
  std::string cases;
  for (const CommandModel& command : program.commands) {
    words += (words.empty() ? "" : " ") + command.name;
    std::string values;
    std::string positional;
    for (const OptionModel& option : command.options) {
      const std::string list = choices_of(option);
      if (list.empty()) continue;
      values += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                            fmt::join(option.names, "|"), list);
    }
    for (const OptionModel& argument : command.arguments) positional += choices_of(argument);
    cases += fmt::format("    {})\n", command.name);
    if (!values.empty()) cases += fmt::format("      case $before in\n{}      esac\n", values);
    cases += fmt::format("      options='{}'\n", all_names(command));
    if (!positional.empty()) cases += fmt::format("      positional='{}'\n", positional);
    cases += "      ;;\n";
  }
  return fmt::format(R"(# bash completion for tidemark; made by `tidemark completion bash`
_tidemark() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options='' positional=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $positional ]]; then
    COMPREPLY=($(compgen -W "$positional" -- "$word"))
  fi
}}
complete -o default -o bashdefault -F _tidemark tidemark
)",
                     words, cases);
}

std::string zsh_completion(const CommandModel& program) {
  std::string names;
  std::string cases;
  for (const CommandModel& command : program.commands) {
    names += fmt::format("    {}\n", shell_quote(fmt::format("{}:{}", command.name, zsh_text(command.description))));
    cases += fmt::format("    {})\n      _arguments", command.name);
    std::string rest = "*:file:_files";
    for (const OptionModel& option : command.options) {
      const std::string values =
          choices_of(option).empty() ? ":_files" : fmt::format(":({})", choices_of(option));
      for (const std::string& name : option.names) {
        const std::string spec =
            fmt::format("{}[{}]{}", name, zsh_text(option.description), option.value.empty() ? "" : ":value" + values);
        cases += fmt::format(" \\\n        {}", shell_quote(spec));
      }
    }
    for (const OptionModel& argument : command.arguments) {
      if (!choices_of(argument).empty()) rest = fmt::format("1:value:({})", choices_of(argument));
    }
    cases += fmt::format(" \\\n        {}\n      ;;\n", shell_quote(rest));
  }
  return fmt::format(R"(#compdef tidemark
# zsh completion for tidemark; made by `tidemark completion zsh`
_tidemark() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '--help[Print help]' '--version[Print the version]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_tidemark "$@"
)",
                     names, cases);
}

std::string fish_completion(const CommandModel& program) {
  std::string text = "# fish completion for tidemark; made by `tidemark completion fish`\n";
  for (const CommandModel& command : program.commands) {
    text += fmt::format("complete -c tidemark -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        fish_quote(command.description));
    for (const OptionModel& option : command.options) {
      std::string line = fmt::format("complete -c tidemark -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!choices_of(option).empty()) {
        line += fmt::format(" -x -a '{}'", choices_of(option));
      } else if (!option.value.empty()) {
        line += " -r";
      }
      text += fmt::format("{} -d {}\n", line, fish_quote(option.description));
    }
    for (const OptionModel& argument : command.arguments) {
      if (choices_of(argument).empty()) continue;  // files, which fish offers anyway
      text += fmt::format("complete -c tidemark -n '__fish_seen_subcommand_from {}' -f -a '{}' -d {}\n", command.name,
                          choices_of(argument), fish_quote(argument.description));
    }
  }
  return text;
}

std::function<int()> setup_completion(CommandLine& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "Shell: bash, zsh or fish")->required()->one_of("bash|zsh|fish");
  app.footer(
      "Examples:\n"
      "  tidemark completion bash > ~/.local/share/bash-completion/completions/tidemark\n"
      "  tidemark completion fish > ~/.config/fish/completions/tidemark.fish");
  return [shell, &app] {
    const CommandModel program = command_model(app.program());
    if (*shell == "bash") return print(bash_completion(program));
    return print(*shell == "zsh" ? zsh_completion(program) : fish_completion(program));
  };
}

}  // namespace tidemark::cli
