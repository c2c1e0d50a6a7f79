#include "collect/process/elf_dynamic.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>

namespace tidemark::process {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kGlobalData = R_AARCH64_GLOB_DAT;
#else
#error "import slots: relocation types of this machine are not known"
#endif

constexpr std::uint16_t kHiddenVersion = 0x8000;

/// Ranges and the dynamic section, from the program headers.
const ElfW(Dyn) * read_program_headers(const dl_phdr_info& info, DynamicObject* out) {
  const ElfW(Dyn)* dynamic = nullptr;
  const auto page = static_cast<std::uintptr_t>(getpagesize());
  out->bias = info.dlpi_addr;
  out->begin = UINTPTR_MAX;
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    const std::uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      if (begin < out->begin) out->begin = begin;
      if (end > out->end) out->end = end;
    } else if (header.p_type == PT_GNU_RELRO) {
      out->relro_begin = begin / page * page;
      out->relro_end = end / page * page;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    }
  }
  return dynamic;
}

/// glibc rewrites the addresses in the dynamic section when it loads an object; musl does not, nor glibc the vdso's.
template <typename T>
const T* table(const DynamicObject& object, std::uintptr_t address) {
  const bool absolute = address >= object.begin && address < object.end;
  return reinterpret_cast<const T*>(absolute ? address : object.bias + address);
}

/// The GNU hash of a name (the one of DT_GNU_HASH).
std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

bool read_dynamic_object(const dl_phdr_info& info, DynamicObject* out) noexcept {
  *out = {};
  const ElfW(Dyn)* dynamic = read_program_headers(info, out);
  if (dynamic == nullptr) return false;
  std::size_t relative_count = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const std::uintptr_t value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        out->symbols = const_cast<ElfW(Sym)*>(table<ElfW(Sym)>(*out, value));
        break;
      case DT_STRTAB:
        out->strings = table<char>(*out, value);
        break;
      case DT_GNU_HASH:
        out->gnu_hash = table<std::uint32_t>(*out, value);
        break;
      case DT_VERSYM:
        out->versions = table<std::uint16_t>(*out, value);
        break;
      case DT_JMPREL:
        out->plt_relocations = table<ElfW(Rela)>(*out, value);
        break;
      case DT_PLTRELSZ:
        out->plt_relocation_count = value / sizeof(ElfW(Rela));
        break;
      case DT_RELA:
        out->relocations = table<ElfW(Rela)>(*out, value);
        break;
      case DT_RELASZ:
        out->relocation_count = value / sizeof(ElfW(Rela));
        break;
      case DT_RELACOUNT:
        relative_count = value;
        break;
      default:
        break;
    }
  }
  if (out->relocations != nullptr && relative_count <= out->relocation_count) {
    out->relocations += relative_count;
    out->relocation_count -= relative_count;
  }
  if (out->plt_relocations == nullptr) out->plt_relocation_count = 0;
  if (out->relocations == nullptr) out->relocation_count = 0;
  return out->symbols != nullptr && out->strings != nullptr;
}

std::uintptr_t* find_definition_value(const DynamicObject& object, const char* symbol) noexcept {
  if (object.gnu_hash == nullptr) return nullptr;
  // Layout: bucket count, first hashed symbol, Bloom filter size, shift; filter words; buckets; chain of hashes.
  const std::uint32_t bucket_count = object.gnu_hash[0];
  const std::uint32_t first_symbol = object.gnu_hash[1];
  const std::uint32_t filter_size = object.gnu_hash[2];
  const std::uint32_t* buckets = object.gnu_hash + 4 + filter_size * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  const std::uint32_t hash = gnu_hash_of(symbol);
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const std::uint32_t entry = chain[index - first_symbol];
    ElfW(Sym)& candidate = object.symbols[index];
    const bool hidden = object.versions != nullptr && (object.versions[index] & kHiddenVersion) != 0;
    if ((entry | 1) == (hash | 1) && !hidden && candidate.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(candidate.st_info) == STT_FUNC && std::strcmp(object.strings + candidate.st_name, symbol) == 0) {
      return &candidate.st_value;
    }
    if ((entry & 1) != 0) return nullptr;  // the last of its bucket
  }
}

void* find_definition(const DynamicObject& object, const char* symbol) noexcept {
  const std::uintptr_t* const value = find_definition_value(object, symbol);
  return value != nullptr ? reinterpret_cast<void*>(object.bias + __atomic_load_n(value, __ATOMIC_ACQUIRE)) : nullptr;
}

void** next_import_slot(const DynamicObject& object, const char* symbol, std::size_t* position) noexcept {
  const std::size_t count = object.plt_relocation_count + object.relocation_count;
  while (*position < count) {
    const std::size_t at = (*position)++;
    const ElfW(Rela)& relocation = at < object.plt_relocation_count
                                       ? object.plt_relocations[at]
                                       : object.relocations[at - object.plt_relocation_count];
    const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type != kJumpSlot && type != kGlobalData) continue;
    const auto& name = object.strings[object.symbols[ELF64_R_SYM(relocation.r_info)].st_name];
    if (std::strcmp(&name, symbol) == 0) return reinterpret_cast<void**>(object.bias + relocation.r_offset);
  }
  return nullptr;
}

}  // namespace tidemark::process
