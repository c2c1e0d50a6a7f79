// Completion scripts, made from the commands and options themselves, so that they cannot lag behind.
#pragma once

#include <string>

#include "cli/command_model.h"

namespace tidemark::cli {

[[nodiscard]] std::string bash_completion(const CommandModel& program);
[[nodiscard]] std::string zsh_completion(const CommandModel& program);
[[nodiscard]] std::string fish_completion(const CommandModel& program);

}  // namespace tidemark::cli
