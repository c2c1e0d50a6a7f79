// The stack of an allocation, as a number: walk, hash, look up; only a stack never seen before costs more. And what
// such a stack needs to be named later: definitions of this process, its libraries, code objects and generated files.
#pragma once

#include <cstdint>

#include "collect/process/python/python_walker.h"
#include "collect/process/session.h"
#include "trace/quality_id.h"

namespace tidemark::process {

/// Number of the calling thread's current stack in its lane (ring::kNoStack when there is none), after sending its
/// definition if it is new. `caller` is where the hook was called from; native frames want thread->stack_bounds. Keeps
/// errno.
std::uint32_t capture_stack(ThreadState* thread, const NativeContext& caller, StackMode mode) noexcept;

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

/// Whether torch.compile generated the file.
bool is_generated_file(const PythonText& file) noexcept;

/// Defines the lines of the generated file that `code`, which has been described, is from, unless this lane has been
/// told them. False where they cannot be read (yet), and when the pool has no room: to be tried again.
bool describe_lines(ThreadState* thread, std::uintptr_t code) noexcept;

/// Both are copied and kept for good. A path that was named before gets the new name. Any thread.
void name_file(const char* path, const char* name) noexcept;

/// The name of a path, or null.
const char* name_of_file(const PythonText& path) noexcept;

}  // namespace tidemark::process
