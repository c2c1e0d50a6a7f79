// The command line as data. Help, the manual page and shell completion are made from it, so that they cannot differ
// from what is parsed, nor from each other.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tidemark::cli {

struct OptionModel {
  std::vector<std::string> names{};  ///< with dashes, short ones first; empty for a positional argument
  std::string argument{};            ///< the name of a positional argument: "FILE"
  std::string value{};  ///< what stands for its value: "FILE", or the words it is one of ("text|json"); "": a flag
  std::string group{};  ///< heading in the list of options
  std::string description{};
  std::string initial{};  ///< the default, as help shows it; "": none
  bool required = false;
  bool repeated = false;  ///< takes several values

  /// The words it is one of; empty = no such list. Words in capitals stand for a value ("peak|end|TIME").
  [[nodiscard]] std::vector<std::string> choices() const;
};

/// A command, or the program with its commands.
struct CommandModel {
  std::string name{};
  std::string group{};                   ///< heading in the list of commands
  std::string description{};             ///< one line
  std::string usage{};                   ///< "tidemark run [OPTIONS] [--] PROGRAM [ARGS]..."
  std::vector<OptionModel> arguments{};  ///< positional
  std::vector<OptionModel> options{};
  std::string footer{};  ///< paragraphs and, indented, lines to be shown as they are
  std::vector<CommandModel> commands{};
  bool ends_with_program = false;  ///< what follows its options is a program with options of its own

  /// What is wrong with the options among the words of a command line, which follow the command's name: "unknown option
  /// --kepp; did you mean --keep?". Empty: all are known.
  [[nodiscard]] std::string unknown_option(const std::vector<std::string>& words) const;
};

[[nodiscard]] CommandModel command_model(const CLI::App& app);

}  // namespace tidemark::cli
