#include "collect/process/elf_dynamic.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

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
constexpr std::size_t kMaxImports = 8;  ///< patched in one call

/// Reads ranges and the dynamic section from the program headers.
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

/// glibc rewrites the addresses in the dynamic section when it loads an object; musl does not, and glibc does not for
/// the vDSO.
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

struct Redirection {
  const void* inside;
  const char* symbol;
  void* replacement;
  void** original;
  bool done = false;
};

/// The protection of the segment that contains `address`. It applies to all its pages: symbol tables are outside RELRO.
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

// Code may be on the same page: it stays executable.
bool write_word(std::uintptr_t* place, std::uintptr_t value, int protection) noexcept {
  const auto size = static_cast<std::size_t>(::getpagesize());
  auto* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / size * size);
  const bool writable = (protection & PROT_WRITE) != 0;
  // NOLINTNEXTLINE(clang-analyzer-security.MmapWriteExec): for the time of one store, if the page has code
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
  if (found == wanted.replacement) return 1;  // already patched
  *wanted.original = found;
  wanted.done = write_word(value, reinterpret_cast<std::uintptr_t>(wanted.replacement) - object.bias,
                           protection_at(*info, reinterpret_cast<std::uintptr_t>(value)));
  return 1;
}

struct Request {
  const char* symbol;
  void* replacement;
  void* original = nullptr;  ///< target of a bound slot
  void* definition = nullptr;
  std::size_t patched = 0;
};

void* load(void** slot) {
  return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

// Whether it is this library or another copy of it, which defines the same functions and is not the original.
bool is_ours(const DynamicObject& object) {
  return object.contains(reinterpret_cast<const void*>(&patch_import_slots)) ||
         find_definition(object, "tidemark_attach") != nullptr;
}

/// Reads from /proc/self/maps whether the page of `address` is writable, without allocating.
class MapsReader {
 public:
  explicit MapsReader(int fd) : fd_(fd) {}

  bool writable(std::uintptr_t address) {
    // Lines: "begin-end rwxp …"
    for (;;) {
      const std::uintptr_t begin = hexadecimal();
      const std::uintptr_t end = hexadecimal();
      next();  // r
      const int write = next();
      if (write < 0) return false;
      if (address >= begin && address < end) return write == 'w';
      for (int c = next(); c != '\n'; c = next()) {
        if (c < 0) return false;
      }
    }
  }

 private:
  /// A number and the character after it.
  std::uintptr_t hexadecimal() {
    std::uintptr_t value = 0;
    for (int c = next(); c > ' ' && c != '-'; c = next()) {
      value = value << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  }

  int next() {
    if (at_ == size_) {
      size_ = read(fd_, buffer_, sizeof buffer_);
      at_ = 0;
      if (size_ <= 0) {
        size_ = 0;
        return -1;
      }
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

  int fd_;
  ssize_t at_ = 0;
  ssize_t size_ = 0;
  char buffer_[2048];
};

// Also true if that is unknown, such as without /proc or without a free descriptor.
bool is_writable(std::uintptr_t address) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool result = MapsReader(fd).writable(address);
  close(fd);
  return result;
}

/// Stores into a slot. A read-only slot is made writable for the store. An object that another thread is still
/// relocating is writable, and must stay so.
bool store(const DynamicObject& object, void** slot, void* value) {
  const auto address = reinterpret_cast<std::uintptr_t>(slot);
  const bool protectable = address >= object.relro_begin && address < object.relro_end;
  const bool close_again = protectable && !is_writable(address);
  const auto page_size = static_cast<std::size_t>(getpagesize());
  auto* page = reinterpret_cast<void*>(address / page_size * page_size);
  if (protectable && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (close_again) mprotect(page, page_size, PROT_READ);
  return true;
}

/// First pass. A slot that points into its own object is not bound yet (to its PLT), or the object imports a symbol
/// that it defines itself: in both cases the definition is used.
int find_original(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& request = *static_cast<Request*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || is_ours(object)) return 0;
  if (request.definition == nullptr) request.definition = find_definition(object, request.symbol);
  std::size_t position = 0;
  while (void** slot = next_import_slot(object, request.symbol, &position)) {
    void* target = load(slot);
    if (target != nullptr && target != request.replacement && !object.contains(target)) request.original = target;
  }
  return request.original != nullptr ? 1 : 0;
}

/// Second pass.
int patch_object(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& request = *static_cast<Request*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || is_ours(object)) return 0;
  std::size_t position = 0;
  while (void** slot = next_import_slot(object, request.symbol, &position)) {
    if (load(slot) == request.replacement || store(object, slot, request.replacement)) ++request.patched;
  }
  return 0;
}

struct OwnerSearch {
  const void* address;
  bool ours;
};

int find_owner(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& search = *static_cast<OwnerSearch*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object) || !object.contains(search.address)) return 0;
  search.ours = is_ours(object);
  return 1;
}

bool is_our_function(const void* function) noexcept {
  OwnerSearch search = {function, false};
  ::dl_iterate_phdr(find_owner, &search);
  return search.ours;
}

/// Looks `symbol` up in the dependencies of the library that contains `caller`.
void* find_through(const void* caller, const char* symbol) noexcept {
  Dl_info info = {};
  if (::dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* library = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = ::dlsym(library, symbol);
  ::dlclose(library);  // the caller stays loaded anyway
  return found;
}

const ElfW(Rela) & relocation_at(const DynamicObject& object, std::size_t index) {
  return index < object.plt_relocation_count ? object.plt_relocations[index]
                                             : object.relocations[index - object.plt_relocation_count];
}

/// The version of a symbol that the object imports, as its symbol table numbers it; null for none.
const char* needed_version(const DynamicObject& object, std::size_t symbol) {
  if (object.versions == nullptr || object.needed_versions == nullptr) return nullptr;
  const int wanted = object.versions[symbol] & ~kHiddenVersion;
  const auto behind = [](const auto* entry, std::size_t offset) {
    return reinterpret_cast<const char*>(entry) + offset;
  };
  for (const auto* file = object.needed_versions;;) {
    const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(behind(file, file->vn_aux));
    for (int left = file->vn_cnt; left > 0; --left) {
      if (version->vna_other == wanted) return object.strings + version->vna_name;
      version = reinterpret_cast<const ElfW(Vernaux)*>(behind(version, version->vna_next));
    }
    if (file->vn_next == 0) return nullptr;
    file = reinterpret_cast<const ElfW(Verneed)*>(behind(file, file->vn_next));
  }
}

struct LibraryImports {
  const char* name;
  std::span<const Import> imports;
  LibraryRange range = {};
  const char* versions[kMaxImports] = {};  ///< of imports with unbound slots
};

bool is_called(const dl_phdr_info& info, const char* name) {
  const char* slash = std::strrchr(info.dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info.dlpi_name;
  return std::strncmp(file, name, std::strlen(name)) == 0;
}

/// First pass: finds the targets of bound slots. A slot that points into its own object (to its PLT) is not bound yet.
int find_originals(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  auto& wanted = *static_cast<LibraryImports*>(argument);
  DynamicObject object;
  if (!is_called(*info, wanted.name) || !read_dynamic_object(*info, &object)) return 0;
  wanted.range = {object.begin, object.end};
  for (std::size_t index = 0; index < wanted.imports.size(); ++index) {
    const Import& import = wanted.imports[index];
    std::size_t position = 0;
    void** const slot = next_import_slot(object, import.symbol, &position);
    if (slot == nullptr || import.original->load(std::memory_order_relaxed) != nullptr) continue;
    void* const target = load(slot);
    if (target != nullptr && target != import.replacement && !object.contains(target)) {
      import.original->store(target, std::memory_order_release);
    } else {
      const char* version = needed_version(object, ELF64_R_SYM(relocation_at(object, position - 1).r_info));
      wanted.versions[index] = version != nullptr ? version : "";
    }
  }
  return 0;
}

/// Looks up as the loader binds: the global scope comes before the library's own dependencies.
void* definition_for(const LibraryImports& library, std::size_t index) {
  const char* symbol = library.imports[index].symbol;
  const char* version = library.versions[index];
  void* found = *version != '\0' ? ::dlvsym(RTLD_DEFAULT, symbol, version) : ::dlsym(RTLD_DEFAULT, symbol);
  return found != nullptr ? found : find_through(reinterpret_cast<const void*>(library.range.begin), symbol);
}

/// Second pass.
int patch_library(dl_phdr_info* info, std::size_t /*size*/, void* argument) {
  const auto& wanted = *static_cast<const LibraryImports*>(argument);
  DynamicObject object;
  if (!is_called(*info, wanted.name) || !read_dynamic_object(*info, &object)) return 0;
  for (const Import& import : wanted.imports) {
    if (import.replacement == nullptr || import.original->load(std::memory_order_relaxed) == nullptr) continue;
    std::size_t position = 0;
    while (void** slot = next_import_slot(object, import.symbol, &position)) {
      if (load(slot) != import.replacement) store(object, slot, import.replacement);
    }
  }
  return 0;
}

struct Search {
  const char* symbol;
  void* found;
};

int search_object(dl_phdr_info* info, std::size_t /*size*/, void* argument) noexcept {
  auto* search = static_cast<Search*>(argument);
  DynamicObject object;
  if (!read_dynamic_object(*info, &object)) return 0;
  if (is_ours(object)) return 0;
  search->found = find_definition(object, search->symbol);
  return search->found != nullptr ? 1 : 0;
}

/// Searches the whole process: a caller that ends in a tail call is not visible, and the function to which the hook
/// returns may be unrelated to c10.
void* find_anywhere(const char* symbol) noexcept {
  Search search = {symbol, nullptr};
  ::dl_iterate_phdr(search_object, &search);
  return search.found;
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
      case DT_VERNEED:
        out->needed_versions = table<ElfW(Verneed)>(*out, value);
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
    const ElfW(Rela)& relocation = relocation_at(object, (*position)++);
    const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type != kJumpSlot && type != kGlobalData) continue;
    const auto& name = object.strings[object.symbols[ELF64_R_SYM(relocation.r_info)].st_name];
    if (std::strcmp(&name, symbol) == 0) return reinterpret_cast<void**>(object.bias + relocation.r_offset);
  }
  return nullptr;
}

bool redirect_definition(const void* inside, const char* symbol, void* replacement, void** original) noexcept {
  Redirection wanted = {inside, symbol, replacement, original};
  ::dl_iterate_phdr(redirect, &wanted);
  return wanted.done;
}

std::size_t patch_import_slots(const char* symbol, void* replacement, void** original) noexcept {
  Request request{symbol, replacement};
  if (load(original) == nullptr) {
    dl_iterate_phdr(find_original, &request);
    void* found = request.original != nullptr ? request.original : request.definition;
    if (found == nullptr) return 0;
    __atomic_store_n(original, found, __ATOMIC_RELEASE);
  }
  dl_iterate_phdr(patch_object, &request);
  return request.patched;
}

LibraryRange patch_imports_of(const char* name, std::span<const Import> imports) noexcept {
  const int saved = errno;
  LibraryImports wanted{name, imports.first(imports.size() < kMaxImports ? imports.size() : kMaxImports)};
  ::dl_iterate_phdr(find_originals, &wanted);
  for (std::size_t index = 0; index < wanted.imports.size(); ++index) {
    if (wanted.versions[index] == nullptr) continue;
    if (void* found = definition_for(wanted, index); found != nullptr)
      wanted.imports[index].original->store(found, std::memory_order_release);
  }
  ::dl_iterate_phdr(patch_library, &wanted);
  errno = saved;
  return wanted.range;
}

// Python loads libc10 with RTLD_LOCAL, so dlsym(RTLD_NEXT) from a preloaded library does not find it; the calling
// library does, among its own dependencies. If that fails too, every loaded library is searched. Another copy of this
// library is called only if it follows in the loader's order: two copies that found each other would call each other
// until the stack is full.
void* find_next_definition(const char* symbol, const void* caller, const void* self) noexcept {
  const int saved = errno;
  void* found = find_through(caller, symbol);
  if (found == nullptr || is_our_function(found)) found = ::dlsym(RTLD_NEXT, symbol);
  if (found == nullptr || found == self) found = find_anywhere(symbol);
  Dl_info info = {};
  if (found != nullptr && ::dladdr(found, &info) != 0 && info.dli_fname != nullptr) {
    // The handle is kept: the definition must stay loaded as long as the hooks call it.
    void* const kept = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    (void)kept;
  }
  errno = saved;
  return found;
}

}  // namespace tidemark::process
