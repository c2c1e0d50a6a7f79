// Tells the recorder which lines of the program the lines of a generated file were made from.
#pragma once

#include <cstdint>

#include "collect/process/session.h"

namespace tidemark::process {

/// Whether torch.compile generated the file.
bool is_generated_file(const PythonText& file) noexcept;

/// Defines the lines of the generated file that `code`, which has been described, is from, unless this lane has been
/// told them. False where they cannot be read (yet), and when the pool has no room: to be tried again.
bool describe_lines(ThreadState* thread, std::uintptr_t code) noexcept;

}  // namespace tidemark::process
