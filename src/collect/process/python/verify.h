// Whether the table's row for this version fits the interpreter at hand.
#pragma once

#include <cstdint>

#include "collect/process/python/interpreter.h"
#include "collect/process/python/layout.h"

namespace tidemark::process {

enum class Verdict : std::uint8_t {
  no_frames,  ///< the calling thread runs no Python function: nothing to compare with
  fits,
  differs,
};

/// Compares the layout with what the interpreter says about itself (_Py_DebugOffsets from 3.13 on, sizes of its types,
/// PyThreadState_GetInterpreter) and with the frames and code objects of the calling thread. Never faults: whatever the
/// layout points at is read through system calls. Slow (microseconds). May change errno.
Verdict verify_layout(const Layout& layout, const Interpreter& interpreter) noexcept;

}  // namespace tidemark::process
