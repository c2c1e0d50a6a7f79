// What a program writes to stdout, for programs that answer a question and end.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

struct ProgramOutput {
  std::string text;
  std::optional<int> exit_code;  ///< none when a signal ended it
};

/// Runs a program, found in PATH, with an empty stdin; its stderr is this process'. An error when it does not start, or
/// does not end in time: then it is killed.
[[nodiscard]] Result<ProgramOutput> program_output(std::vector<std::string> words, std::chrono::seconds patience);

}  // namespace tidemark
