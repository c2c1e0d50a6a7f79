// PyTorch's allocators as a source of events; see the .cpp for what is interposed.
#pragma once

#include <cstddef>

namespace tidemark::process {

/// For a library loaded into a running process: points the import slots of every loaded library at the hooks. Returns
/// how many slots lead to them now. Call again after further libraries were loaded.
std::size_t patch_torch_hooks() noexcept;

}  // namespace tidemark::process
