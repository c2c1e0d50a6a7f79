// The kernels that a program's libraries register, and what their code needs: it decides the occupancy, and so the size
// of some workspaces.
#pragma once

#include <cstddef>
#include <optional>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/device_code.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

/// A registered fat binary; what __cudaRegisterFatBinary hands out. Lives as long as the process. Thread-safe.
[[nodiscard]] void** register_fat_binary(const void* wrapper);
/// Remembers which kernel a function of the host stands for. Thread-safe; costs one entry of a list, as a library
/// registers tens of thousands while it is loaded.
void register_kernel(void** binary, const void* host, const char* name);

/// Machine code that the driver is handed (cuModuleLoadData): a cubin, a fat binary, or anything else, of whose kernels
/// nothing is known then. Reads it at once. Lives as long as the process. Thread-safe.
[[nodiscard]] Handle load_module(const void* image);
/// A kernel of a module, as the functions below take it: another one at each call. None when the module's code has no
/// kernel of this name. Thread-safe.
[[nodiscard]] Handle module_kernel(Handle module, const char* name);

/// Notes that this thread launched a kernel; the first time, the driver loads its code. Thread-safe.
void note_launch(const void* host);
/// The name under which the kernel that this thread launched last was registered; empty when there is none.
/// Thread-safe.
[[nodiscard]] const char* last_launched_kernel();

/// Registers, shared memory and architecture of a kernel, from the code that the driver would choose for the profile's
/// GPU. For a kernel without such code the values of a small kernel, counted as an estimate. Thread-safe; the first
/// question for a binary reads it.
[[nodiscard]] FunctionAttributes kernel_attributes(const void* host);

/// Sets how much dynamic shared memory a block may be launched with; at first it is what shared_per_block leaves. False
/// when no multiprocessor of the profile's GPU has so much for a block. Thread-safe.
bool allow_dynamic_shared(const void* host, int bytes);

/// Blocks of `threads` threads and `shared` bytes of dynamic shared memory that a multiprocessor of the profile's GPU
/// holds at once (occupancy.h); 0 where a block cannot be launched. Thread-safe.
[[nodiscard]] int blocks_per_multiprocessor(const void* host, int threads, std::size_t shared);

/// Dynamic shared memory of a block, of what it may be launched with, that leaves room for `blocks` blocks of `threads`
/// threads at once; none where there is no room for so many. Thread-safe.
[[nodiscard]] std::optional<std::size_t> available_dynamic_shared(const void* host, int blocks, int threads);

/// Warps of a kernel with so many registers for each thread that have room in a multiprocessor's registers.
[[nodiscard]] int warps_by_registers(const Profile& gpu, int registers);

/// Blocks of `threads` threads and `shared` bytes of dynamic shared memory at once; 0 where not even one fits. Launch
/// bounds do not count, as for the driver.
[[nodiscard]] int blocks_per_multiprocessor(const Profile& gpu, const KernelNeeds& kernel, int threads,
                                            std::size_t shared);

/// Dynamic shared memory that each block can have when a multiprocessor is to hold `blocks` of them; none where it
/// cannot hold so many.
[[nodiscard]] std::optional<std::size_t> available_dynamic_shared(const Profile& gpu, const KernelNeeds& kernel,
                                                                  int blocks, int threads);

}  // namespace tidemark::phantom
