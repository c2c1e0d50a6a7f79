// Actions of a planned program that limit the accuracy of its plan: results that it read, calls without an
// implementation, estimated sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "phantom/gpu/usage_file.h"

namespace tidemark::phantom {

/// Counts a copy from a device to the host of values that are not known and may decide the program's further actions.
/// Lock-free, allocates nothing.
void count_read();

/// Counts a request for device memory. Lock-free, allocates nothing.
void count_request();

/// Counts a communicator of NCCL that this process joined.
void count_communicator();

/// Counts device memory that the driver and its libraries took beside the context; `device` as the machine numbers it.
void count_driver_bytes(int device, std::uint64_t bytes);

/// Sets the number of completed training steps, of optimizers without a step so far, and whether the program's own
/// marks determine the steps.
void count_steps(std::uint64_t steps, std::uint64_t idle_optimizers, bool by_marks);

/// Records that the last training step is complete, and that this process waits to be ended.
void say_stopped();

/// Counts a call without an implementation, and prints its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts device memory for the library that contains the address `caller`, except for PyTorch's allocator. Returns the
/// argument for count_returned(). Thread-safe.
[[nodiscard]] std::optional<std::size_t> count_taken(const void* caller, int device, std::uint64_t bytes);
void count_returned(std::optional<std::size_t> library, std::uint64_t bytes);

/// Records that the library of `caller` has its own CUDA runtime, linked statically or of another version, and prints
/// it once on stderr. Thread-safe.
void note_own_runtime(const void* caller);
/// Whether that was recorded for the library of `caller`.
[[nodiscard]] bool has_own_runtime(const void* caller);

/// Counts an operation with an estimated workspace, or a kernel with unknown machine code, once for each name.
/// Thread-safe.
void count_estimate(Estimate kind, const std::string& name);

}  // namespace tidemark::phantom
