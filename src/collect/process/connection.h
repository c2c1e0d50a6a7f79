// How this process reaches its recorder: the socket named in the environment, and the memory handed over it.
#pragma once

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Remembers the socket's path from the environment, so that later changes to the environment do not matter.
void configure_connection() noexcept;
[[nodiscard]] bool connection_configured() noexcept;

/// Makes the shared memory, hands it to the recorder and closes every descriptor again (the program may close or reuse
/// any number). Null on failure, after one line on stderr. Does not wait for the recorder.
ring::Shared* open_connection(ring::Clock clock) noexcept;

/// Whether something still listens on the socket. A few system calls.
[[nodiscard]] bool recorder_alive() noexcept;

/// When the process ends without a recording: leaves a mark beside the socket that says whether PyTorch was there.
void leave_mark(bool torch_seen) noexcept;

/// One line on stderr: "tidemark: MESSAGE (pid N)".
void say(const char* message) noexcept;

}  // namespace tidemark::process
