#include "cli/completion.h"

#include <memory>

#include "cli/command.h"
#include "cli/reading.h"

namespace tidemark::cli {

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
