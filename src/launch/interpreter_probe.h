// Properties of a Python interpreter and its PyTorch, queried without importing PyTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace tidemark {

struct InterpreterFacts {
  std::string executable;
  std::string implementation;  ///< "cpython"
  std::string version;         ///< "3.11.7"
  std::uint16_t layout = 0;    ///< 0x030B for 3.11
  bool free_threaded = false;
  bool debug = false;
  std::string torch_version;  ///< empty if it has none
  std::string torch_folder;
  std::string torch_cuda;  ///< version of CUDA, "13.0"; empty for builds without CUDA
  std::string torch_hip;
};

/// The interpreter of a command: itself, or the one in its first line. std::nullopt for other programs.
[[nodiscard]] std::optional<std::string> interpreter_of(const std::string& program);

/// Runs `interpreter`. An error if it does not start, does not end within 30 s, or prints something else.
[[nodiscard]] Result<InterpreterFacts> probe_interpreter(const std::string& interpreter);

}  // namespace tidemark
