// Reads memory of this process that may not be mapped, without a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::process {

/// Copies `size` bytes (at most 4096) from `address`; false if any of them cannot be read. Costs system calls: for
/// one-time checks, not for the hot path. May change errno. Thread-safe.
bool safe_read(void* to, std::uintptr_t address, std::size_t size) noexcept;

template <typename T>
bool safe_load(std::uintptr_t address, T* to) noexcept {
  return safe_read(to, address, sizeof(T));
}

}  // namespace tidemark::process
