// The ELF objects that the dynamic loader has mapped, read from memory.
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
  const char* name = nullptr;  ///< the loader's name: "" for the executable
  const ElfW(Phdr) * headers = nullptr;
  std::size_t header_count = 0;

  /// First program header of a type, or null.
  [[nodiscard]] const ElfW(Phdr) * header(std::uint32_t type) const noexcept;

  /// The segment at `address`, if it is mapped readable: from the start of the segment to its end. Empty if there is
  /// none.
  [[nodiscard]] Segment segment_at(std::uintptr_t address) const noexcept;
};

/// The object mapped at `address`; false if there is none. Lock-free with glibc 2.35 and later; else it takes the
/// loader's lock for a moment. The object must not be unloaded while the result is in use: this holds for one that the
/// calling thread is executing.
bool find_loaded_object(std::uintptr_t address, LoadedObject* out) noexcept;

}  // namespace tidemark::process
