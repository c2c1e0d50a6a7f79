// The command line as data: the source of help, the manual page and shell completion, so that they cannot differ from
// the parser, nor from each other.
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
  std::string value{};  ///< placeholder for its value: "FILE", or the allowed words ("text|json"); "": a flag
  std::string group{};  ///< heading in the list of options
  std::string description{};
  std::string initial{};  ///< the default in help; "": none
  bool required = false;
  bool repeated = false;  ///< takes several values

  /// The allowed words; empty = no such list. Words in capitals are placeholders for a value ("peak|end|TIME").
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
  bool ends_with_program = false;  ///< its options are followed by a program with its own options

  /// The problem of the options among the words of a command line after the command's name: "unknown option --kepp; did
  /// you mean --keep?". Empty: all are known.
  [[nodiscard]] std::string unknown_option(const std::vector<std::string>& words) const;
};

[[nodiscard]] CommandModel command_model(const CLI::App& app);

}  // namespace tidemark::cli
