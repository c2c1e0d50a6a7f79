#include "collect/process/redirect_definition.h"

#include <sys/mman.h>
#include <unistd.h>

#include "collect/process/elf_dynamic.h"

namespace tidemark::process {
namespace {

struct Redirection {
  const void* inside;
  const char* symbol;
  void* replacement;
  void** original;
  bool done = false;
};

/// The protection of the segment that has `address`: of all of its pages, symbol tables are not part of RELRO.
int protection_at(const dl_phdr_info& info, std::uintptr_t address) noexcept {
  for (std::size_t index = 0; index < info.dlpi_phnum; ++index) {
    const auto& header = info.dlpi_phdr[index];
    const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || address < begin || address >= begin + header.p_memsz) continue;
    return ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) | ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
           ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  }
  return PROT_NONE;
}

// Code may stand on the same page: it stays executable.
bool write_word(std::uintptr_t* place, std::uintptr_t value, int protection) noexcept {
  const auto size = static_cast<std::size_t>(::getpagesize());
  auto* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / size * size);
  const bool writable = (protection & PROT_WRITE) != 0;
  if (!writable && ::mprotect(page, size, protection | PROT_WRITE) != 0) return false;
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
  if (!writable) ::mprotect(page, size, protection);
  return true;
}

int redirect(dl_phdr_info* info, std::size_t /*size*/, void* argument) noexcept {
  auto& wanted = *static_cast<Redirection*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || !object.contains(wanted.inside)) return 0;
  std::uintptr_t* const value = find_definition_value(object, wanted.symbol);
  if (value == nullptr) return 1;
  void* const found = reinterpret_cast<void*>(object.bias + *value);
  if (found == wanted.replacement) return 1;  // done before
  *wanted.original = found;
  wanted.done = write_word(value, reinterpret_cast<std::uintptr_t>(wanted.replacement) - object.bias,
                           protection_at(*info, reinterpret_cast<std::uintptr_t>(value)));
  return 1;
}

}  // namespace

bool redirect_definition(const void* inside, const char* symbol, void* replacement, void** original) noexcept {
  Redirection wanted = {inside, symbol, replacement, original};
  ::dl_iterate_phdr(redirect, &wanted);
  return wanted.done;
}

}  // namespace tidemark::process
