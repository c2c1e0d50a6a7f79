// Stream-ordered memory pools (cudaMallocAsync), and the addresses of device symbols.
#pragma once

#include <cstddef>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

// All functions are thread-safe.

/// The pool that cudaMallocAsync uses on `device`.
[[nodiscard]] Handle default_pool(int device);

/// Memory of a pool. A pool grows by whole chunks of 32 MiB, as measured on an H200, and keeps what is freed; none when
/// the device has not that much left. `caller`: see allocate_device().
[[nodiscard]] void* allocate_from_pool(Handle pool, std::size_t bytes, const void* caller = nullptr);
/// False when `pointer` is no allocation of a pool.
bool free_to_pool(void* pointer);
/// cudaMemPoolAttr; false for unknown ones.
bool get_pool_attribute(Handle pool, int attribute, void* value);
bool set_pool_attribute(Handle pool, int attribute, const void* value);
/// Gives back to the device what no allocation needs, down to `bytes`.
void trim_pool(Handle pool, std::size_t bytes);

/// A device address that stands for a variable of a program's device code, the same for each `symbol`.
[[nodiscard]] void* symbol_address(const void* symbol);

}  // namespace tidemark::phantom
