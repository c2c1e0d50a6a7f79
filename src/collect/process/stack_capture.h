// The stack of an allocation, as a number: walk, hash, look up; only a stack never seen before costs more.
#pragma once

#include <cstdint>

#include "collect/process/session.h"

namespace tidemark::process {

/// Number of the calling thread's current stack in its lane (ring::kNoStack when there is none), after sending its
/// definition if it is new. `caller` is where the hook was called from; native frames want thread->stack_bounds. Keeps
/// errno.
std::uint32_t capture_stack(ThreadState* thread, const NativeContext& caller, StackMode mode) noexcept;

}  // namespace tidemark::process
