// What the processes of a plan hold of the phantom GPUs: a table in the phantom's folder, so that processes that share
// a device run out of it together. What a process held is free when it ends, however it ends.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark::phantom {

/// What a process holds of a device, its context included.
struct ProcessMemory {
  int process;  ///< as getpid() says it
  std::uint64_t bytes;
};

// Devices are numbered as the machine has them (physical_device()). All functions are thread-safe.

/// Makes this process's context on `device`, if it has none. False when the device has not so much left.
bool make_context(int device);
/// Whether this process has a context there.
[[nodiscard]] bool has_context(int device);

/// Counts `bytes` more for this process, which gets a context with them. False when the device has not so much left.
[[nodiscard]] bool take_memory(int device, std::uint64_t bytes);
void give_back_memory(int device, std::uint64_t bytes);

/// Counts what the driver and its libraries take for this process beside its context; of a device that has less left,
/// that.
void take_driver_memory(int device, std::uint64_t bytes);

/// What each process holds that has a context on `device`, in no order.
[[nodiscard]] std::vector<ProcessMemory> memory_of_processes(int device);
/// All of it, as the driver would report it.
[[nodiscard]] std::uint64_t memory_used(int device);

}  // namespace tidemark::phantom
