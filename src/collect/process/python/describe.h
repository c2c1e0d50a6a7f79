// Names in a code object.
#pragma once

#include <cstdint>

#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

/// See python_describe(). Reads memory directly: `code` must have come from a walk of the calling thread.
bool describe_code(const Layout& layout, std::uintptr_t code_type, std::uintptr_t code, PythonCode* out) noexcept;

}  // namespace tidemark::process
