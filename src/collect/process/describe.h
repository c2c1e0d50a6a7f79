// Definitions that this process sends about itself: who it is, what it loaded, what its code objects are called.
#pragma once

#include <cstdint>

#include "collect/process/session.h"
#include "trace/quality_id.h"

namespace tidemark::process {

/// Ranks as the launcher put them into the environment (collect/ring/ranks.h), the interpreter
/// found, and the library that reports allocations. Sent again when more has become known.
void describe_process(ThreadState* thread) noexcept;

/// Like describe_process(), but only when the rank was unknown before and is known now (a launcher that sets it inside
/// the process).
void describe_late_rank(ThreadState* thread) noexcept;

/// Names the library that has `definition`, which stays loaded, as the one that reports allocations; its path tells the
/// version of PyTorch. Not while an event is being recorded. Keeps errno.
void set_reporting_library(const void* definition) noexcept;

/// Defines a code object in this lane unless it has been. False when the pool or the table has no room.
bool describe_code(ThreadState* thread, std::uintptr_t code) noexcept;

/// Defines the module of the call that returns to `return_address` in this lane unless it has been. False when the pool
/// has no room.
bool describe_module(ThreadState* thread, std::uintptr_t return_address) noexcept;

/// Tells the recording that something is missing from it.
void describe_loss(ThreadState* thread, QualityId kind, const char* text) noexcept;

}  // namespace tidemark::process
