// Handles of objects that hold nothing: distinct from one another, as programs compare them and keep them as keys.
#pragma once

#include <atomic>
#include <cstdint>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// A handle that no other object of the process has. Lock-free.
[[nodiscard]] inline Handle new_handle() {
  static std::atomic<std::uintptr_t> next{0x100000};
  return reinterpret_cast<Handle>(next.fetch_add(64, std::memory_order_relaxed));
}

}  // namespace tidemark::phantom
