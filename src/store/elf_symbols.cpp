#include "store/elf_symbols.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/demangle.h"
#include "base/scoped_fd.h"

namespace tidemark {

struct ElfFunction {
  std::uint64_t address;
  std::uint64_t size;
  std::uint32_t name;  // offset into the string table
  std::uint8_t rank;   // which of several names of one address to show: the smallest
};

namespace {

std::string read_build_id(Elf* elf) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return {};
  for (std::size_t index = 0; index < count; ++index) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(index), &header) == nullptr || header.p_type != PT_NOTE) continue;
    Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset), header.p_filesz,
                                          header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    if (data == nullptr) continue;
    GElf_Nhdr note;
    std::size_t name_at = 0;
    std::size_t id_at = 0;
    for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &id_at)) != 0;) {
      const auto* bytes = static_cast<const unsigned char*>(data->d_buf);
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || std::memcmp(bytes + name_at, "GNU", 4) != 0) continue;
      std::string id;
      for (std::size_t byte = 0; byte < note.n_descsz; ++byte) id += fmt::format("{:02x}", bytes[id_at + byte]);
      return id;
    }
  }
  return {};
}

// The section to take names from: .symtab when the file was not stripped, else .dynsym.
Elf_Scn* symbol_section(Elf* elf, GElf_Shdr* header) {
  Elf_Scn* found = nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr candidate;
    if (gelf_getshdr(section, &candidate) == nullptr) continue;
    if (candidate.sh_type != SHT_SYMTAB && candidate.sh_type != SHT_DYNSYM) continue;
    if (found != nullptr && candidate.sh_type != SHT_SYMTAB) continue;
    found = section;
    *header = candidate;
  }
  return found;
}

// Global names before weak before local ones: what a person calls the function.
std::uint8_t binding_rank(unsigned char binding) {
  if (binding == STB_GLOBAL) return 0;
  return binding == STB_WEAK ? 1 : 2;
}

std::vector<ElfFunction> read_functions(Elf_Data* data, const GElf_Shdr& header) {
  std::vector<ElfFunction> functions;
  if (header.sh_entsize == 0) return functions;
  const std::size_t count = data->d_size / header.sh_entsize;
  for (std::size_t index = 0; index < count; ++index) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(index), &symbol) == nullptr) break;
    const unsigned char type = GELF_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
    functions.push_back({symbol.st_value, symbol.st_size, symbol.st_name, binding_rank(GELF_ST_BIND(symbol.st_info))});
  }
  std::sort(functions.begin(), functions.end(), [](const ElfFunction& left, const ElfFunction& right) {
    if (left.address != right.address) return left.address < right.address;
    return left.rank != right.rank ? left.rank < right.rank : left.name < right.name;
  });
  return functions;
}

}  // namespace

struct ElfSymbols::Impl {
  ScopedFd file;
  Elf* elf = nullptr;
  std::size_t string_section = 0;
  std::vector<ElfFunction> functions;  // by address

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (elf != nullptr) elf_end(elf);
  }
};

ElfSymbols::ElfSymbols(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElfSymbols::~ElfSymbols() = default;

Result<std::unique_ptr<ElfSymbols>> ElfSymbols::open(const std::string& path, const std::string& build_id) {
  auto impl = std::make_unique<Impl>();
  // O_NONBLOCK: the path comes from a file; a FIFO there must not hang us before fstat tells.
  impl->file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!impl->file) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  struct stat facts {};
  if (fstat(impl->file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return Error{"not a regular file"};
  if (elf_version(EV_CURRENT) == EV_NONE) return Error{"libelf is too old"};
  impl->elf = elf_begin(impl->file.get(), ELF_C_READ_MMAP, nullptr);
  if (impl->elf == nullptr || elf_kind(impl->elf) != ELF_K_ELF) return Error{"not an ELF file"};
  if (read_build_id(impl->elf) != build_id) return Error{"changed since the recording (its build-id differs)"};

  GElf_Shdr header;
  Elf_Scn* section = symbol_section(impl->elf, &header);
  Elf_Data* data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
  if (data == nullptr) return Error{"has no symbol table"};
  impl->string_section = header.sh_link;
  impl->functions = read_functions(data, header);
  if (impl->functions.empty()) return Error{"has no function symbols"};
  return std::unique_ptr<ElfSymbols>(new ElfSymbols(std::move(impl)));
}

std::optional<std::string> ElfSymbols::function_at(std::uint64_t address) const {
  const std::vector<ElfFunction>& functions = impl_->functions;
  auto after =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](std::uint64_t value, const ElfFunction& function) { return value < function.address; });
  if (after == functions.begin()) return std::nullopt;
  // All names of the nearest address below, best first.
  const std::uint64_t start = std::prev(after)->address;
  auto candidate =
      std::lower_bound(functions.begin(), after, start,
                       [](const ElfFunction& function, std::uint64_t value) { return function.address < value; });
  for (; candidate != after; ++candidate) {
    // Hand-written assembly often has size 0: it reaches up to the next symbol.
    if (candidate->size != 0 && address - start >= candidate->size) continue;
    const char* name = elf_strptr(impl_->elf, impl_->string_section, candidate->name);
    if (name != nullptr && *name != '\0') return demangle(name);
  }
  return std::nullopt;
}

}  // namespace tidemark
