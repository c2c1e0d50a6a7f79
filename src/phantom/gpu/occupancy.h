// How many blocks of a kernel a multiprocessor holds, by the limits that the CUDA C++ Programming
// Guide lists for each compute capability.
#pragma once

#include <cstddef>
#include <optional>

#include "phantom/gpu/cubin.h"
#include "phantom/gpu/profile.h"

namespace tidemark::phantom {

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
