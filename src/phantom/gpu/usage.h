// What a planned program did that decides how far its plan can be trusted: results that it read, calls that had no
// answer, sizes that are estimates.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark::phantom {

/// Counts a copy from a device to the host: what the program does with it depends on values that no kernel computed.
/// Lock-free, allocates nothing.
void count_read();

/// Counts a request for device memory. Lock-free, allocates nothing.
void count_request();

/// Says what this process takes of a device, by its number in the profile, with the context. Lock-free.
void say_used(int device, std::uint64_t bytes);

/// Counts a communicator of NCCL that this process joined.
void count_communicator();

/// Says how many training steps are complete, and how many optimizers have made none so far.
void count_steps(std::uint64_t steps, std::uint64_t idle_optimizers);

/// Says that the last training step is complete, and that this process waits to be ended.
void say_stopped();

/// Counts a call that the phantom GPU has no answer for, and says its name once on stderr. Thread-safe.
void count_unanswered(const char* function);

/// Counts an operation whose workspace is an estimate, once for each name, and says the first one's on stderr.
/// Thread-safe.
void count_estimated_workspace(const std::string& operation);

}  // namespace tidemark::phantom
