// Completion scripts, made from the commands and options themselves, so that they cannot lag behind.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tidemark::cli {

struct CompletionOption {
  std::vector<std::string> names;  ///< with dashes; empty for a positional argument
  std::string description;
  bool takes_value = false;
  std::vector<std::string> choices;  ///< words the value is one of; empty = no such list
};

struct CompletionCommand {
  std::string name;
  std::string description;
  std::vector<CompletionOption> options;
};

using CompletionModel = std::vector<CompletionCommand>;

[[nodiscard]] CompletionModel completion_model(const CLI::App& program);
[[nodiscard]] std::string bash_completion(const CompletionModel& model);
[[nodiscard]] std::string zsh_completion(const CompletionModel& model);
[[nodiscard]] std::string fish_completion(const CompletionModel& model);

}  // namespace tidemark::cli
