// The connection of this process to its recorder: the socket named in the environment, and the memory sent over it.
#pragma once

#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Stores the socket's path, so that later changes of the environment have no effect; null: there is no recorder.
void configure_connection(const char* path) noexcept;
[[nodiscard]] bool connection_configured() noexcept;
/// That path; empty if there is none.
[[nodiscard]] const char* recorder_socket() noexcept;

/// Preferred address for the collector's own memory: far below addresses that mmap() chooses, so that a recorded
/// program's mappings are where they would be without recording.
inline constexpr std::uintptr_t kThreadsAddress = std::uintptr_t{1} << 44;
inline constexpr std::uintptr_t kThreadsStride = std::uintptr_t{1} << 21;  ///< distance between two threads
inline constexpr std::uintptr_t kRingAddress = kThreadsAddress + (std::uintptr_t{1} << 40);

/// Creates the shared memory, sends it to the recorder and closes every descriptor again (the program may close or
/// reuse any number). Null on failure, after one line on stderr. Does not wait for the recorder. `place`: memory of an
/// earlier recording, which the new memory replaces and which stays mapped in any case; null if there is none.
ring::Shared* open_connection(ring::Clock clock, ring::Shared* place) noexcept;

/// Frees the memory. Its addresses stay mapped, and writes to them have no effect.
void close_connection(ring::Shared* shared) noexcept;

/// Whether a process still listens on the socket. A few system calls.
[[nodiscard]] bool recorder_alive() noexcept;

/// Why a process has no recording; the recorder reads these letters.
enum class Unrecorded : char { no_torch = 'N', torch_seen = 'T', could_not_start = 'F', filtered = 'S' };

/// Writes a mark beside the socket.
void report_unrecorded(Unrecorded reason) noexcept;

/// One line on stderr: "tidemark: MESSAGE (pid N)".
void say(const char* message) noexcept;

}  // namespace tidemark::process
