#include "collect/process/native/loaded_object.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>

namespace tidemark::process {
namespace {

constexpr std::size_t kPage = 4096;  // the smallest: at least one page of an object is always mapped

/// Program headers of an object with its ELF header in its first page (the default of all linkers).
bool read_headers(LoadedObject* object) {
  const auto* start = reinterpret_cast<const std::byte*>(object->start);
  ElfW(Ehdr) header;
  std::memcpy(&header, start, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return false;
  const std::size_t size = header.e_phnum * sizeof(ElfW(Phdr));
  if (header.e_phoff > kPage || size > kPage - header.e_phoff || header.e_phoff % alignof(ElfW(Phdr)) != 0)
    return false;
  object->headers = reinterpret_cast<const ElfW(Phdr)*>(start + header.e_phoff);
  object->header_count = header.e_phnum;
  return true;
}

struct Search {
  std::uintptr_t address;
  LoadedObject* out;
};

int visit_object(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  const auto& search = *static_cast<const Search*>(argument);
  LoadedObject object;
  object.start = UINTPTR_MAX;
  for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (start < object.start) object.start = start;
    if (start + header.p_memsz > object.end) object.end = start + header.p_memsz;
  }
  if (search.address < object.start || search.address >= object.end) return 0;
  object.bias = info->dlpi_addr;
  object.name = info->dlpi_name;
  object.headers = info->dlpi_phdr;
  object.header_count = info->dlpi_phnum;
  *search.out = object;
  return 1;
}

bool find_with_lock(std::uintptr_t address, LoadedObject* out) {
  Search search{address, out};
  return dl_iterate_phdr(visit_object, &search) != 0;
}

// `dl_find_object` of glibc 2.35 and later. Declared here, because the headers at build time may be older than the C
// library at run time.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* object;
  void* eh_frame;
  unsigned long long reserved[7];
};
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
static_assert(sizeof(FoundObject) == sizeof(dl_find_object) &&
              offsetof(FoundObject, object) == offsetof(dl_find_object, dlfo_link_map));
#endif

using FindObject = int (*)(void* address, FoundObject* result);
std::atomic<FindObject> find_object{nullptr};

// dlsym takes the loader's lock: it is called once, early. Looked up by name, so that the library also loads with an
// older C library.
[[gnu::constructor]] void look_up_find_object() {
  find_object.store(reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object")), std::memory_order_relaxed);
}

}  // namespace

const ElfW(Phdr) * LoadedObject::header(std::uint32_t type) const noexcept {
  for (std::size_t i = 0; i < header_count; ++i) {
    if (headers[i].p_type == type) return &headers[i];
  }
  return nullptr;
}

Segment LoadedObject::segment_at(std::uintptr_t address) const noexcept {
  for (std::size_t i = 0; i < header_count; ++i) {
    const auto& header_i = headers[i];
    if (header_i.p_type != PT_LOAD || (header_i.p_flags & PF_R) == 0) continue;
    const std::uintptr_t begin = bias + header_i.p_vaddr;
    if (address - begin < header_i.p_filesz) {
      return {reinterpret_cast<const std::byte*>(begin), header_i.p_filesz, begin};
    }
  }
  return {};
}

bool find_loaded_object(std::uintptr_t address, LoadedObject* out) noexcept {
  if (const FindObject find = find_object.load(std::memory_order_relaxed)) {
    FoundObject found;
    if (find(reinterpret_cast<void*>(address), &found) != 0) return false;
    out->start = reinterpret_cast<std::uintptr_t>(found.map_start);
    out->end = reinterpret_cast<std::uintptr_t>(found.map_end);
    out->bias = found.object->l_addr;
    out->name = found.object->l_name;
    if (read_headers(out)) return true;
  }
  return find_with_lock(address, out);
}

}  // namespace tidemark::process
