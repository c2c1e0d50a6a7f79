// PyTorch as a source of events: its allocators, its autograd engine, and the program's marks; the .cpp lists the
// interposed functions.
#pragma once

#include <cstddef>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// For a library loaded into a running process: points the import slots of every loaded library at the hooks. Returns
/// how many slots point at them now. Call it again after further libraries were loaded.
std::size_t patch_torch_hooks() noexcept;

/// As patch_torch_hooks().
std::size_t patch_autograd_hook() noexcept;

/// Does nothing for a null name. Not for the hot path: the name goes through the lane each time.
void record_mark(ring::MarkKind kind, const char* name) noexcept;

}  // namespace tidemark::process
