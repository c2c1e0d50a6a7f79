// How this process reaches its recorder: the socket named in the environment, and the memory handed over it.
#pragma once

#include <cstdint>

#include "collect/ring/layout.h"

namespace tidemark::process {

/// Remembers the socket's path, so that later changes to the environment do not matter; null: there is no recorder.
void configure_connection(const char* path) noexcept;
[[nodiscard]] bool connection_configured() noexcept;
/// That path; empty where there is none.
[[nodiscard]] const char* recorder_socket() noexcept;

/// Where the recorder's own memory is mapped when nothing else is: far below what mmap() chooses, so that a recorded
/// program's mappings lie where they would without it.
inline constexpr std::uintptr_t kThreadsAddress = std::uintptr_t{1} << 44;
inline constexpr std::uintptr_t kThreadsStride = std::uintptr_t{1} << 21;  ///< from one thread's to the next
inline constexpr std::uintptr_t kRingAddress = kThreadsAddress + (std::uintptr_t{1} << 40);

/// Makes the shared memory, hands it to the recorder and closes every descriptor again (the program may close or reuse
/// any number). Null on failure, after one line on stderr. Does not wait for the recorder. `place`: memory of an
/// earlier recording, which the new memory replaces and which stays mapped in any case; null where there is none.
ring::Shared* open_connection(ring::Clock clock, ring::Shared* place) noexcept;

/// Gives the memory back to the system. Its addresses stay mapped and can still be written to, which nobody sees.
void close_connection(ring::Shared* shared) noexcept;

/// Whether something still listens on the socket. A few system calls.
[[nodiscard]] bool recorder_alive() noexcept;

/// Why a process has no recording; the recorder reads these letters.
enum class Unrecorded : char { no_torch = 'N', torch_seen = 'T', could_not_start = 'F', filtered = 'S' };

/// Leaves a mark beside the socket.
void report_unrecorded(Unrecorded reason) noexcept;

/// One line on stderr: "tidemark: MESSAGE (pid N)".
void say(const char* message) noexcept;

}  // namespace tidemark::process
