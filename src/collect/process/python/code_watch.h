// Notices the death of code objects whose addresses were given a meaning elsewhere.
//
// CPython reuses the memory of a dead code object, so its address may come to mean another function. The deallocator in
// PyCode_Type (a writable, exported structure) is replaced by ours, which looks the address up and goes on to the
// original.
#pragma once

#include <cstdint>

namespace tidemark::process {

/// Puts our deallocator into the type at `code_type`. Once; the library must never be unloaded afterwards.
void watch_code_deaths(std::uintptr_t code_type) noexcept;

/// Adds an address. Lock-free, any thread; the code object must be alive.
void watch_code(std::uintptr_t code) noexcept;

/// Counts deaths of watched code objects, and rarely one of an unwatched one. See python_generation().
std::uint64_t code_generation() noexcept;

}  // namespace tidemark::process
