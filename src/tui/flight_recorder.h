// The `tidemark run --keep` that a process runs under, and how to ask it for a recording.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark::tui {

/// Whether these are the arguments of a `tidemark run` that writes what it keeps on SIGUSR1. Any other passes SIGUSR1
/// on to its program, which would die of it: in doubt it is not one.
[[nodiscard]] bool dumps_on_signal(const std::vector<std::string>& arguments);

/// The PID of that one among a process and those above it; an error that says why there is none. `root` comes before
/// "/proc".
[[nodiscard]] Result<std::int64_t> find_flight_recorder(std::int64_t pid, const std::string& root = "");

/// Sends SIGUSR1 to it; its own messages say where the recording goes. The PID that it was sent to.
Result<std::int64_t> ask_flight_recorder(std::int64_t pid);

}  // namespace tidemark::tui
