// Import slots (GOT entries) of loaded libraries, patched when the library was loaded too late to be interposed.
#pragma once

#include <cstddef>

namespace tidemark::process {

/// Over all loaded ELF objects except copies of this library: points the import slots of `symbol` at `replacement`,
/// atomically. Gives the original function's address in `*original` before the first slot is patched; a value that is
/// there already is kept. Nothing is patched while the original is not known. Returns how many slots lead to the
/// replacement now, those of earlier calls included.
///
/// To be called again after libraries were loaded. Thread-safe, also against calls through the slots; a thread that is
/// just binding a lazy slot for the first time can undo its patch, which the next call makes good. Slow (it reads every
/// relocation of the process); holds the loader's lock meanwhile. Allocates nothing.
std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept;

}  // namespace tidemark::process
