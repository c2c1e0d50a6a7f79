// A monitor's question for the storages that this process has and who holds them (ring/questions.h): a Python program
// answers it itself, with the modules of the Python package that are in this library.
//
// As long as nobody asks, an allocation costs two loads and a comparison more. Once somebody does, the next one has the
// main thread answer, between two bytecodes, and takes no notice of the question any more.
#pragma once

#include <atomic>
#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Control::questions when it was looked at last.
inline constinit std::atomic<std::uint32_t> questions_seen{0};

inline bool question_waits(const ring::Control& control) noexcept {
  return control.questions.load(std::memory_order_relaxed) != questions_seen.load(std::memory_order_relaxed);
}

/// Has the main thread answer soon, where the process has an interpreter that is known here. Any thread, without the
/// GIL; keeps errno.
void schedule_answer(const ring::Control& control) noexcept;

/// Answers now, if somebody asks: for a thread that has the GIL and is not in the middle of anything. False where the
/// program is to see the Python exception that is set, which is of its own.
bool answer_now() noexcept;

/// For a new connection: nobody has asked anything.
void forget_questions() noexcept;

}  // namespace tidemark::process
