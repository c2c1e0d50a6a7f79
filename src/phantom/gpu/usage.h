// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer, sizes that are estimates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "phantom/gpu/usage_file.h"

namespace tidemark::phantom {

/// Counts a copy from a device to the host: what the program does with it depends on values that no kernel computed.
/// Lock-free, allocates nothing.
void count_read();

/// Counts a request for device memory. Lock-free, allocates nothing.
void count_request();

/// Counts a communicator of NCCL that this process joined.
void count_communicator();

/// Counts device memory that the driver and its libraries took beside the context; `device` as the machine numbers it.
void count_driver_bytes(int device, std::uint64_t bytes);

/// Says how many training steps are complete, how many optimizers have made none so far, and whether the steps are
/// those that the program marks itself.
void count_steps(std::uint64_t steps, std::uint64_t idle_optimizers, bool by_marks);

/// Says that the last training step is complete, and that this process waits to be ended.
void say_stopped();

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts device memory for the library that `caller`, an address of its code, lies in; PyTorch's allocator is none.
/// What count_returned() takes back. Thread-safe.
[[nodiscard]] std::optional<std::size_t> count_taken(const void* caller, int device, std::uint64_t bytes);
void count_returned(std::optional<std::size_t> library, std::uint64_t bytes);

/// Notes that the library of `caller` has a CUDA runtime of its own, linked statically or of another version, and says
/// so once on stderr. Thread-safe.
void note_own_runtime(const void* caller);
/// Whether that was noted of the library of `caller`.
[[nodiscard]] bool has_own_runtime(const void* caller);

/// Counts an operation whose workspace is an estimate, or a kernel whose machine code is not known, once for each name.
/// Thread-safe.
void count_estimate(Estimate kind, const std::string& name);

}  // namespace tidemark::phantom
