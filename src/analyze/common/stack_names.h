// A stack with names, and which of its frames tell a person most.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/symbols.h"

namespace tidemark {

/// Frames from the outermost to the innermost; no frames = the stack is not known.
struct NamedStack {
  std::vector<FrameName> frames;
  std::size_t call_site = 0;        ///< frame to show for the whole stack: the innermost of the user's own Python code
  std::optional<std::size_t> leaf;  ///< frame to add as "via": the innermost Python frame, when it is another one
};

[[nodiscard]] NamedStack name_stack(Symbols& symbols, StackId stack);

/// Whether a Python file belongs to PyTorch itself (site-packages/torch or dist-packages/torch) or to the interpreter.
[[nodiscard]] bool is_framework_file(const std::string& file);

}  // namespace tidemark
