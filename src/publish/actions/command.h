// A command of the user's, run for something that happened.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "base/result.h"

namespace tidemark {

/// Runs `sh -c COMMAND` with `input` on its stdin and its output thrown away, and waits for its end. What it started is
/// ended with it, and all of that after `patience`, or soon once `stop` is true; then none is started. An error when it
/// does not start, takes too long or fails. Any thread; leaves no zombie.
[[nodiscard]] Result<void> run_command(const std::string& command, const std::string& input,
                                       std::chrono::milliseconds patience, const std::atomic<bool>& stop);

}  // namespace tidemark
