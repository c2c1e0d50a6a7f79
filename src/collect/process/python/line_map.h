// Which lines of the program a generated line was made from, as torch.compile itself keeps it for PyTorch's profiler.
//
// The class PyCodeCache of torch/_inductor/codecache.py has a dictionary `linemaps`: path of a generated file → two
// tuples, lines at which something new begins and for each of them a stack trace as text (or None). It is read through
// CPython's functions on a thread that holds the GIL; none of them runs code of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"
#include "collect/process/python/python_walker.h"

namespace tidemark::process {

/// Fills `*out` with the line map of the file that `code` is from. False where there is none (yet), and on threads
/// without the GIL. What it refers to stays valid while the calling thread neither runs Python code nor gives the GIL
/// away.
bool find_line_map(const Layout& layout, const Interpreter& interpreter, std::uintptr_t code, LineMap* out) noexcept;

/// Entry `index` of a line map. False where it has no stack trace.
bool read_line_map(const Layout& layout, const Interpreter& interpreter, const LineMap& map, std::size_t index,
                   std::uint32_t* line, PythonText* trace) noexcept;

}  // namespace tidemark::process
