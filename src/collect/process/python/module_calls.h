// Which code object calls the modules of torch.nn. The first local of its frames is the module that is called.
#pragma once

#include <atomic>
#include <cstdint>

#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

/// Its address; 0 before it was seen, and after its death.
inline constinit std::atomic<std::uintptr_t> module_call_code{0};

/// Whether a code object with these names is Module._wrapped_call_impl (torch from 2.1 on) or Module._call_impl
/// (before), and keeps its first local in the frame. That of _call_impl is in a cell where the other one exists.
bool is_module_call(const Layout& layout, std::uintptr_t code, const PythonCode& names) noexcept;

}  // namespace tidemark::process
