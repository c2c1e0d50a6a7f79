// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer, sizes that are estimates.
#pragma once

#include <cstdint>
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

/// Says how many training steps are complete, and how many optimizers have made none so far.
void count_steps(std::uint64_t steps, std::uint64_t idle_optimizers);

/// Says that the last training step is complete, and that this process waits to be ended.
void say_stopped();

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts an operation whose workspace is an estimate, or a kernel whose machine code is not known, once for each name;
/// says the first of a kind on stderr. Thread-safe.
void count_estimate(Estimate kind, const std::string& name);

}  // namespace tidemark::phantom
