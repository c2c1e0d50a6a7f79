#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>

#include "analyze/common/analysis_options.h"
#include "cli/command.h"
#include "cli/reading.h"

namespace tidemark::cli {
namespace {

// "text|json" as words. Words in capitals stand for a value ("peak|end|TIME") and cannot be completed.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices = split_choices(type);
  if (choices.size() == 1) return {};
  std::erase_if(choices, [](const std::string& word) {
    return word.empty() || std::isupper(static_cast<unsigned char>(word.front())) != 0;
  });
  return choices;
}

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

std::string all_names(const CompletionCommand& command) {
  std::string names;
  for (const CompletionOption& option : command.options) {
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

CompletionModel completion_model(const CLI::App& program) {
  CompletionModel model;
  for (const CLI::App* app : program.get_subcommands([](const CLI::App*) { return true; })) {
    CompletionCommand command = {app->get_name(), app->get_description(), {}};
    for (const CLI::Option* option : app->get_options()) {
      CompletionOption entry;
      for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
      entry.description = option->get_description();
      entry.takes_value = option->get_type_size() != 0;
      entry.choices = choices_of(option->get_type_name());
      command.options.push_back(std::move(entry));
    }
    model.push_back(std::move(command));
  }
  return model;
}

std::string bash_completion(const CompletionModel& model) {
  std::string words;
  std::string cases;
  for (const CompletionCommand& command : model) {
    words += (words.empty() ? "" : " ") + command.name;
    std::string values;
    std::string positional;
    for (const CompletionOption& option : command.options) {
      if (option.choices.empty()) continue;
      const std::string list = fmt::format("{}", fmt::join(option.choices, " "));
      if (option.names.empty()) {
        positional = list;
      } else {
        values += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                              fmt::join(option.names, "|"), list);
      }
    }
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

std::string zsh_completion(const CompletionModel& model) {
  std::string names;
  std::string cases;
  for (const CompletionCommand& command : model) {
    names += fmt::format("    {}\n", shell_quote(fmt::format("{}:{}", command.name, zsh_text(command.description))));
    cases += fmt::format("    {})\n      _arguments", command.name);
    std::string rest = "*:file:_files";
    for (const CompletionOption& option : command.options) {
      const std::string values =
          option.choices.empty() ? ":_files" : fmt::format(":({})", fmt::join(option.choices, " "));
      if (option.names.empty()) {
        if (!option.choices.empty()) rest = "1:value" + values;
        continue;
      }
      for (const std::string& name : option.names) {
        const std::string spec =
            fmt::format("{}[{}]{}", name, zsh_text(option.description), option.takes_value ? ":value" + values : "");
        cases += fmt::format(" \\\n        {}", shell_quote(spec));
      }
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

std::string fish_completion(const CompletionModel& model) {
  std::string text = "# fish completion for tidemark; made by `tidemark completion fish`\n";
  for (const CompletionCommand& command : model) {
    text += fmt::format("complete -c tidemark -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        fish_quote(command.description));
    for (const CompletionOption& option : command.options) {
      std::string line = fmt::format("complete -c tidemark -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) {
        line += fmt::format(" {}a '{}'", option.names.empty() ? "-f -" : "-x -", fmt::join(option.choices, " "));
      } else if (option.names.empty()) {
        continue;  // files, which fish offers anyway
      } else if (option.takes_value) {
        line += " -r";
      }
      text += fmt::format("{} -d {}\n", line, fish_quote(option.description));
    }
  }
  return text;
}

std::function<int()> setup_completion(CommandLine& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "Shell")->required()->one_of("bash|zsh|fish");
  app.footer(
      "Examples:\n"
      "  tidemark completion bash > ~/.local/share/bash-completion/completions/tidemark\n"
      "  tidemark completion fish > ~/.config/fish/completions/tidemark.fish");
  return [shell, &app] {
    const CompletionModel model = completion_model(app.program());
    if (*shell == "bash") return print(bash_completion(model));
    return print(*shell == "zsh" ? zsh_completion(model) : fish_completion(model));
  };
}

}  // namespace tidemark::cli
