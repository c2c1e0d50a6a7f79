// Frames and stacks as one line of printable text.
#pragma once

#include <string>

#include "analyze/common/stack_names.h"
#include "store/symbols.h"

namespace tidemark {

/// The part of a path that tells files apart: from the package on below site-packages, else the last two components.
[[nodiscard]] std::string short_path(const std::string& path);

/// A native function without its parameters: "at::native::empty_cpu(...)" as "at::native::empty_cpu".
[[nodiscard]] std::string short_function(const std::string& function);

/// A Python function without those around it: "make.<locals>.wrapper" as "wrapper".
[[nodiscard]] std::string local_name(const std::string& function);

/// "forward (llama/model.py:31)"; native: "at::native::empty_cpu (libtorch_cpu.so)".
[[nodiscard]] std::string frame_text(const FrameName& frame);

/// "forward (llama/model.py:31) via linear", or "(no stack)".
[[nodiscard]] std::string stack_text(const NamedStack& stack);

/// The callers of that place, without those in PyTorch's own files and, of Python code, without native ones: " ← step
/// (train.py:40) ← main (train.py:80)".
[[nodiscard]] std::string callers_text(const NamedStack& stack);

/// Both.
[[nodiscard]] std::string stack_text_with_callers(const NamedStack& stack);

}  // namespace tidemark
