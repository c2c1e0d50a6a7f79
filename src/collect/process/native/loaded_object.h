// The ELF objects that the dynamic loader has mapped, as they lie in memory.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#include "collect/process/native/byte_reader.h"

namespace tidemark::process {

struct LoadedObject {
  std::uintptr_t start = 0;  ///< mapped range, holes between segments included
  std::uintptr_t end = 0;
  std::uintptr_t bias = 0;     ///< address in memory - address in the file's tables
  const char* name = nullptr;  ///< as the loader knows it: "" for the executable
  const ElfW(Phdr) * headers = nullptr;
  std::size_t header_count = 0;

  /// First program header of a type, or null.
  [[nodiscard]] const ElfW(Phdr) * header(std::uint32_t type) const noexcept;

  /// What the file has at `address` and mapped readable: from the start of the segment that holds it to the segment's
  /// end. Empty when there is none.
  [[nodiscard]] Segment segment_at(std::uintptr_t address) const noexcept;
};

/// The object mapped at `address`; false when there is none. Lock-free with glibc 2.35 and later; else it takes the
/// loader's lock for a moment. The object must not be unloaded while the result is in use: true for one that the
/// calling thread is executing.
bool find_loaded_object(std::uintptr_t address, LoadedObject* out) noexcept;

}  // namespace tidemark::process
