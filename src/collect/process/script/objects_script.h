// Handles a monitor's request for the storages of this process and their owners (ring/layout.h): a Python program
// answers it itself, with modules of the Python package that are embedded in this library.
//
// Without requests, an event costs nothing more: the flag makes a lane's connection differ from the thread's. With a
// request, the main thread waits at its next event between two bytecodes, while a script thread answers (script.h).
#pragma once

#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Whether the lane belongs to connection `epoch` after all, and a request waits: it is noted, and the main thread will
/// answer if the process has a supported interpreter. Takes the calling thread's lane, without the GIL; keeps errno.
bool take_question(ring::Lane* lane, std::uint32_t epoch) noexcept;

/// Answers now if there is a request: for a thread that has the GIL and is not in the middle of an operation.
void answer_now() noexcept;

/// For a new connection: there are no requests.
void forget_questions() noexcept;

}  // namespace tidemark::process
