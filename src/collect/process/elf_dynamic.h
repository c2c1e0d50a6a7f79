// The dynamic section of a loaded ELF object: its imports and its definitions, and other functions in their places: in
// import slots (GOT entries), where the library was loaded too late to be interposed, and in symbol tables. Reads what
// the loader has itself relied on when it loaded the object, so its tables are taken as they are.
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
  std::uintptr_t relro_begin = 0;  ///< what the loader made read-only after relocation, whole pages
  std::uintptr_t relro_end = 0;
  ElfW(Sym) * symbols = nullptr;  ///< in pages that are read-only as a rule
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;          ///< null: defines nothing that can be found
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

/// False for an object without symbols. To be called from a dl_iterate_phdr callback; what it gives is valid in there.
bool read_dynamic_object(const dl_phdr_info& info, DynamicObject* out) noexcept;

/// The default version of the function `symbol` that the object defines and exports; null when it has none, or only one
/// that is chosen when running (IFUNC).
void* find_definition(const DynamicObject& object, const char* symbol) noexcept;

/// The word of the object's symbol table that says where find_definition() finds the function, as an offset from
/// DynamicObject::bias. Null where it finds none.
std::uintptr_t* find_definition_value(const DynamicObject& object, const char* symbol) noexcept;

/// The next import slot of `symbol` in the object (jump slots and plain addresses in the GOT), or null after the last.
/// `*position` is 0 to begin with and moves on with each call.
void** next_import_slot(const DynamicObject& object, const char* symbol, std::size_t* position) noexcept;

/// Points `symbol`, as the library that contains `inside` defines it, at `replacement` in that library's symbol table:
/// dlsym() with its handle and the loader find the replacement. Whoever has looked the function up before keeps it.
/// Gives the function in `*original`, before anybody can find the replacement. False, and nothing has changed, when the
/// library does not define it, or it was done before, or its pages cannot be written. Atomic for threads that look it
/// up meanwhile; holds the loader's lock, allocates nothing.
bool redirect_definition(const void* inside, const char* symbol, void* replacement, void** original) noexcept;

/// Over all loaded ELF objects except copies of this library: points the import slots of `symbol` at `replacement`,
/// atomically. Gives the original function's address in `*original` before the first slot is patched; a value that is
/// there already is kept. Nothing is patched while the original is not known. Returns how many slots lead to the
/// replacement now, those of earlier calls included.
///
/// To be called again after libraries were loaded. Thread-safe, also against calls through the slots; a thread that is
/// just binding a lazy slot for the first time can undo its patch, which the next call makes good. Slow (it reads every
/// relocation of the process); holds the loader's lock meanwhile. Allocates nothing.
std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept;

/// A function that a library imports.
struct Import {
  const char* symbol;
  void* replacement;             ///< null: only looked up
  std::atomic<void*>* original;  ///< what the library calls without the replacement; null = not known yet
};

/// Mapped range of a library; empty where there is none.
struct LibraryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Points the import slots of these functions at their replacements, in loaded libraries whose file names begin with
/// `name`, and only there. Gives each original before its first slot is patched: where the slot leads, or what the
/// loader would bind it to. A function that no such library imports is left alone. Returns the range of the last such
/// library. Thread-safe as patch_import_slots(); takes the loader's lock, allocates nothing. Keeps errno.
LibraryRange patch_imports_of(const char* name, std::span<const Import> imports) noexcept;

/// The definition that an interposed function would have called: address of the next definition of `symbol` for the
/// library that contains `caller`; `self` is our own definition. Null when there is none. The library that has it stays
/// loaded from then on. Takes the loader's lock: once per symbol. Keeps errno.
void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept;

}  // namespace tidemark::process
