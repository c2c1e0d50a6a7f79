// The `tidemark run --keep` above a process, and how to request a recording from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark::tui {

/// Whether these are the arguments of a `tidemark run` that dumps its kept part on SIGUSR1. Any other run passes
/// SIGUSR1 on to its program, which would be killed: in doubt, returns false.
[[nodiscard]] bool dumps_on_signal(const std::vector<std::string>& arguments);

/// The PID of the flight recorder among a process and its ancestors; fails with the reason if there is none. `root` is
/// a prefix of "/proc".
[[nodiscard]] Result<std::int64_t> find_flight_recorder(std::int64_t pid, const std::string& root = "");

/// Sends SIGUSR1 to it; its own messages contain the place of the recording. Returns its PID.
Result<std::int64_t> ask_flight_recorder(std::int64_t pid);

}  // namespace tidemark::tui
