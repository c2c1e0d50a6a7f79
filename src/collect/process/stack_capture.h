// The stack of an allocation, as a number: walk, hash, look up; only a new stack costs more. Also sends the definitions
// needed to name such a stack later: this process, its libraries, code objects and generated files.
#pragma once

#include <cstdint>

#include "collect/process/python/python_walker.h"
#include "collect/process/session.h"
#include "trace/quality_id.h"

namespace tidemark::process {

/// Number of the calling thread's current stack in its lane (ring::kNoStack if there is none), after sending its
/// definition if it is new. `caller` is where the hook was called from; native frames need thread->stack_bounds. Keeps
/// errno.
std::uint32_t capture_stack(ThreadState* thread, const NativeContext& caller, StackMode mode) noexcept;

/// Defines the process: ranks set by the launcher (collect/ring/ranks.h), the interpreter found, and the library that
/// reports allocations. Sent again when more is known.
void describe_process(ThreadState* thread) noexcept;

/// Like describe_process(), but only if the rank was unknown before and is known now (a launcher that sets it inside
/// the process).
void describe_late_rank(ThreadState* thread) noexcept;

/// Sets the library that contains `definition`, which stays loaded, as the one that reports allocations; the version of
/// PyTorch follows from its path. Not while an event is being recorded. Keeps errno.
void set_reporting_library(const void* definition) noexcept;

/// Defines a code object in this lane unless it is defined. False if the pool or the table has no room.
bool describe_code(ThreadState* thread, std::uintptr_t code) noexcept;

/// Defines the module of the call that returns to `return_address` in this lane unless it is defined. False if the pool
/// has no room.
bool describe_module(ThreadState* thread, std::uintptr_t return_address) noexcept;

/// Adds a loss to the recording.
void describe_loss(ThreadState* thread, QualityId kind, const char* text) noexcept;

/// Whether torch.compile generated the file.
bool is_generated_file(const PythonText& file) noexcept;

/// Defines the lines of the generated file of `code`, which has been described, unless they are defined in this lane.
/// False if they cannot be read (yet), or the pool has no room: try again later.
bool describe_lines(ThreadState* thread, std::uintptr_t code) noexcept;

/// Copies both strings, permanently. A path named before gets the new name. Any thread.
void name_file(const char* path, const char* name) noexcept;

/// The name of a path, or null.
const char* name_of_file(const PythonText& path) noexcept;

}  // namespace tidemark::process
