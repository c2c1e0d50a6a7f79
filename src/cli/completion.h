// Completion scripts, made from the commands and options themselves, so that they cannot lag behind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_model.h"

namespace tidemark::cli {

[[nodiscard]] std::string bash_completion(const CommandModel& program);
[[nodiscard]] std::string zsh_completion(const CommandModel& program);
[[nodiscard]] std::string fish_completion(const CommandModel& program);

enum class FileValues : unsigned char {
  devices,  ///< as --device takes them
  marks,    ///< as --at takes them
};

/// Calls `take` once for each value of these files, as soon as it is found. Limited to printable values of bounded
/// length, and in number; skips files that cannot be read.
void find_values_in_files(const std::vector<std::string>& files, FileValues which,
                          const std::function<void(const std::string&)>& take);

}  // namespace tidemark::cli
