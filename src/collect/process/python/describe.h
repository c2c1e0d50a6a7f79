// Names in a code object, and what strings hold.
#pragma once

#include <cstdint>

#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

/// See python_describe(). Reads memory directly: `code` must have come from a walk of the calling thread.
bool describe_code(const Layout& layout, std::uintptr_t code_type, std::uintptr_t code, PythonCode* out) noexcept;

/// Whether the object's type has a flag of tp_flags. False for null.
bool has_type_flag(std::uintptr_t object, std::uint64_t flag) noexcept;

/// Characters of a str, as they lie in memory. False when it is none.
bool read_text(const Layout& layout, std::uintptr_t text, PythonText* out) noexcept;

}  // namespace tidemark::process
