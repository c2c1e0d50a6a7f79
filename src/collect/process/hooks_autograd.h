// PyTorch's autograd, observed where it evaluates a node of a graph; see the .cpp.
#pragma once

#include <cstddef>

namespace tidemark::process {

/// As patch_torch_hooks().
std::size_t patch_autograd_hook() noexcept;

}  // namespace tidemark::process
