// Detects the death of code objects with recorded addresses.
//
// CPython reuses the memory of a dead code object, so its address may later mean another function. The deallocator in
// PyCode_Type (a writable, exported structure) is replaced by one that looks the address up and calls the original.
#pragma once

#include <cstdint>

namespace tidemark::process {

/// Installs the deallocator in the type at `code_type`. Once; the library must never be unloaded afterwards.
void watch_code_deaths(std::uintptr_t code_type) noexcept;

/// Adds an address. Lock-free, any thread; the code object must be alive.
void watch_code(std::uintptr_t code) noexcept;

/// Number of deaths of watched code objects, and rarely of unwatched ones. See python_generation().
std::uint64_t code_generation() noexcept;

}  // namespace tidemark::process
