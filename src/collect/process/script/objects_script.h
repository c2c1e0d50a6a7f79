// A monitor's question for the storages that this process has and who holds them (ring/layout.h): a Python program
// answers it itself, with the modules of the Python package that are in this library.
//
// As long as nobody asks, an event costs nothing more: a lane that has to be looked at is one whose connection is not
// the thread's. Once somebody does, the next event has the main thread wait between two bytecodes, while a thread of
// ours answers (script.h).
#pragma once

#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Whether a lane that is not of connection `epoch` is that all the same, and a question waits: it is taken note of,
/// and the main thread will answer where the process has an interpreter that is known here. The calling thread's lane,
/// without the GIL; keeps errno.
bool take_question(ring::Lane* lane, std::uint32_t epoch) noexcept;

/// Answers now, if somebody asks: for a thread that has the GIL and is not in the middle of anything.
void answer_now() noexcept;

/// For a new connection: nobody has asked anything.
void forget_questions() noexcept;

}  // namespace tidemark::process
