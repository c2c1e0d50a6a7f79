// The dynamic section of a loaded ELF object: its imports and its definitions, and how to replace them: in import slots
// (GOT entries), if the library was loaded too late to be interposed, and in symbol tables. The tables are read without
// checks, because the loader has relied on them when it loaded the object.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark::process {

struct DynamicObject {
  std::uintptr_t bias = 0;
  std::uintptr_t begin = 0;  ///< mapped range
  std::uintptr_t end = 0;
  std::uintptr_t relro_begin = 0;  ///< made read-only by the loader after relocation, whole pages
  std::uintptr_t relro_end = 0;
  ElfW(Sym) * symbols = nullptr;  ///< usually in read-only pages
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;          ///< null: no symbol can be found
  const std::uint16_t* versions = nullptr;          ///< null: unversioned
  const ElfW(Verneed) * needed_versions = nullptr;  ///< of imports; null: unversioned
  const ElfW(Rela) * plt_relocations = nullptr;
  std::size_t plt_relocation_count = 0;
  const ElfW(Rela) * relocations = nullptr;  ///< without the leading relative ones
  std::size_t relocation_count = 0;

  [[nodiscard]] bool contains(const void* address) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value >= begin && value < end;
  }
};

/// False for an object without symbols. Call it from a dl_iterate_phdr callback; `*out` is valid only in the callback.
bool read_dynamic_object(const dl_phdr_info& info, DynamicObject* out) noexcept;

/// The default version of the function `symbol` that the object defines and exports; null if it has none, or only one
/// that is chosen at run time (IFUNC).
void* find_definition(const DynamicObject& object, const char* symbol) noexcept;

/// The word of the object's symbol table that holds the address of the definition found by find_definition(), relative
/// to DynamicObject::bias. Null if there is none.
std::uintptr_t* find_definition_value(const DynamicObject& object, const char* symbol) noexcept;

/// The next import slot of `symbol` in the object (jump slots and plain addresses in the GOT), or null after the last.
/// `*position` starts at 0 and is updated by each call.
void** next_import_slot(const DynamicObject& object, const char* symbol, std::size_t* position) noexcept;

/// Replaces the definition of `symbol` in the library that contains `inside` by `replacement`, in that library's symbol
/// table: dlsym() with its handle and the loader find the replacement. Earlier lookups keep the function. Sets
/// `*original` to the function before the replacement can be found. False, without any change, if the library does not
/// define it, it was replaced before, or its pages cannot be written. Atomic for concurrent lookups; holds the loader's
/// lock, allocates nothing.
bool redirect_definition(const void* inside, const char* symbol, void* replacement, void** original) noexcept;

/// Points the import slots of `symbol` at `replacement`, atomically, in all loaded ELF objects except copies of this
/// library. Sets `*original` to the original function before the first slot is patched; an existing value is kept.
/// Patches nothing while the original is unknown. Returns how many slots point at the replacement now, including those
/// of earlier calls.
///
/// Call it again after libraries were loaded. Thread-safe, also against calls through the slots; a thread that is just
/// binding a lazy slot for the first time can undo its patch, which the next call repeats. Slow (it reads every
/// relocation of the process); holds the loader's lock meanwhile. Allocates nothing.
std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept;

/// A function that a library imports.
struct Import {
  const char* symbol;
  void* replacement;             ///< null: only looked up
  std::atomic<void*>* original;  ///< the library's target without the replacement; null = unknown
};

/// Mapped range of a library; empty if there is none.
struct LibraryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Points the import slots of these functions at their replacements, only in loaded libraries with file names that
/// begin with `name`. Sets each original before its first slot is patched: the target of the slot, or the function to
/// which the loader would bind it. A function that no such library imports is ignored. Returns the range of the last
/// such library. Thread-safe as patch_import_slots(); takes the loader's lock, allocates nothing. Keeps errno.
LibraryRange patch_imports_of(const char* name, std::span<const Import> imports) noexcept;

/// The definition that an interposed function would have called: the next definition of `symbol` for the library that
/// contains `caller`; `self` is this library's definition. Null if there is none. The library that contains it stays
/// loaded from then on. Takes the loader's lock: call it once per symbol. Keeps errno.
void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept;

}  // namespace tidemark::process
