// Stream-ordered memory pools (cudaMallocAsync), and the addresses of device symbols.
#pragma once

#include <cstddef>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

// All functions are thread-safe.

/// The pool of cudaMallocAsync on `device`.
[[nodiscard]] Handle default_pool(int device);

/// Memory of a pool. A pool grows by multiples of 32 MiB, as measured on an H200, and keeps freed memory; nullptr if
/// the device has not enough left. `caller`: see allocate_device().
[[nodiscard]] void* allocate_from_pool(Handle pool, std::size_t bytes, const void* caller = nullptr);
/// False if `pointer` is not an allocation of a pool.
bool free_to_pool(void* pointer);
/// cudaMemPoolAttr; false for unknown ones.
bool get_pool_attribute(Handle pool, int attribute, void* value);
bool set_pool_attribute(Handle pool, int attribute, const void* value);
/// Returns unused memory to the device, down to `bytes`.
void trim_pool(Handle pool, std::size_t bytes);

/// A device address for a variable of a program's device code, the same for each `symbol`.
[[nodiscard]] void* symbol_address(const void* symbol);

}  // namespace tidemark::phantom
