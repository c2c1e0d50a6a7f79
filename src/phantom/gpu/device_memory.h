// Memory of the phantom GPUs held by the processes of a plan: a table in the phantom's folder, so that processes that
// share a device run out of memory together. A process's memory is free when it ends, however it ends.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark::phantom {

/// Memory of a process on a device, including its context.
struct ProcessMemory {
  int process;  ///< from getpid()
  std::uint64_t bytes;
};

// Devices are numbered as in the machine (physical_device()). All functions are thread-safe.

/// Creates this process's context on `device`, if it has none. False if the device has not enough memory left.
bool make_context(int device);
/// Whether this process has a context there.
[[nodiscard]] bool has_context(int device);

/// Adds `bytes` for this process, which gets a context with them. False if the device has not enough memory left.
[[nodiscard]] bool take_memory(int device, std::uint64_t bytes);
void give_back_memory(int device, std::uint64_t bytes);

/// Adds memory that the driver and its libraries take for this process beside its context. It never fails, even if it
/// exceeds the device: the plan then reports that the program does not fit.
void take_driver_memory(int device, std::uint64_t bytes);

/// The memory of each process with a context on `device`, in no order.
[[nodiscard]] std::vector<ProcessMemory> memory_of_processes(int device);
/// The total, as the driver would report it: at most the device's memory.
[[nodiscard]] std::uint64_t memory_used(int device);

}  // namespace tidemark::phantom
