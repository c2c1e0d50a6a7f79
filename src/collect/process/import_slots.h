// Import slots (GOT entries) of loaded libraries, patched when the library was loaded too late to be interposed.
#pragma once

#include <cstddef>

namespace tidemark::process {

/// Over all loaded ELF objects except our own: points the import slots of `symbol` at `replacement`, atomically. Gives
/// the original function's address in `*original` (left alone when none is found). Returns how many slots lead to the
/// replacement now, those of earlier calls included.
std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept;

}  // namespace tidemark::process
