// The kernels registered by a program's libraries, and the resources of their code: they determine the occupancy, and
// so the size of some workspaces.
#pragma once

#include <cstddef>
#include <optional>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/device_code.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

/// A registered fat binary; the result of __cudaRegisterFatBinary. Lives as long as the process. Thread-safe.
[[nodiscard]] void** register_fat_binary(const void* wrapper);
/// Stores the kernel for a host function. Thread-safe; costs one entry of a list, as a library registers tens of
/// thousands while it is loaded.
void register_kernel(void** binary, const void* host, const char* name);

/// Machine code passed to cuModuleLoadData: a cubin, a fat binary, or other data, whose kernels are unknown then. Reads
/// it at once. Lives as long as the process. Thread-safe.
[[nodiscard]] Handle load_module(const void* image);
/// A kernel of a module, as a handle for the functions below; each call returns a new one. Null if the module's code
/// has no kernel of this name. Thread-safe.
[[nodiscard]] Handle module_kernel(Handle module, const char* name);

/// Records that this thread launched a kernel; at its first launch, the driver loads its code. Thread-safe.
void note_launch(const void* host);
/// The registered name of the kernel that this thread launched last; empty if there is none. Thread-safe.
[[nodiscard]] const char* last_launched_kernel();

/// Registers, shared memory and architecture of a kernel, from the code that the driver would choose for the profile's
/// GPU. For a kernel without such code the values of a small kernel, counted as an estimate. Thread-safe; the first
/// call for a binary reads it.
[[nodiscard]] FunctionAttributes kernel_attributes(const void* host);

/// Sets how much dynamic shared memory a block may be launched with; initially the rest of shared_per_block. False if
/// no multiprocessor of the profile's GPU has that much for a block. Thread-safe.
bool allow_dynamic_shared(const void* host, int bytes);

/// Blocks of `threads` threads and `shared` bytes of dynamic shared memory that fit on a multiprocessor of the
/// profile's GPU at once (occupancy.h); 0 if a block cannot be launched. Thread-safe.
[[nodiscard]] int blocks_per_multiprocessor(const void* host, int threads, std::size_t shared);

/// Dynamic shared memory of a block, within its launch limit, with which `blocks` blocks of `threads` threads fit at
/// once; std::nullopt if that many do not fit. Thread-safe.
[[nodiscard]] std::optional<std::size_t> available_dynamic_shared(const void* host, int blocks, int threads);

/// Warps of a kernel with this many registers for each thread that fit into a multiprocessor's registers.
[[nodiscard]] int warps_by_registers(const Profile& gpu, int registers);

/// Blocks of `threads` threads and `shared` bytes of dynamic shared memory at once; 0 if not even one fits. Launch
/// bounds are ignored, as by the driver.
[[nodiscard]] int blocks_per_multiprocessor(const Profile& gpu, const KernelNeeds& kernel, int threads,
                                            std::size_t shared);

/// Dynamic shared memory available to each of `blocks` blocks on a multiprocessor; std::nullopt if that many do not
/// fit.
[[nodiscard]] std::optional<std::size_t> available_dynamic_shared(const Profile& gpu, const KernelNeeds& kernel,
                                                                  int blocks, int threads);

}  // namespace tidemark::phantom
