// Whose code a Python file is.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/symbols.h"

namespace tidemark {

enum class FrameOrigin : std::uint8_t {
  project,  ///< the user's own
  package,  ///< installed: below site-packages or dist-packages, or the start script of one (".../bin/torchrun")
  standard_library,  ///< below lib/pythonX.Y, or frozen into the interpreter
  pytorch,           ///< the package torch, and what its compilers generate
};

[[nodiscard]] FrameOrigin origin_of(std::string_view file);
/// Of a Python frame. Those without a file (calls of modules, autograd nodes) are PyTorch's.
[[nodiscard]] FrameOrigin origin_of(const FrameName& frame);

/// Whether it is Python code of FrameOrigin::project.
[[nodiscard]] bool is_project_code(const FrameName& frame);

/// A file's path below site-packages, dist-packages or lib/pythonX.Y: "torch/nn/functional.py", "copy.py". Empty where
/// it is in none of them.
[[nodiscard]] std::string_view installed_path(std::string_view file);

}  // namespace tidemark
