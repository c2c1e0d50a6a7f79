#include "store/symbols.h"

#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/demangle.h"
#include "base/regular_file.h"
#include "base/scoped_fd.h"
#include "store/symbol_files.h"

namespace tidemark {
namespace {

std::atomic<bool> opens_symbol_files{true};

}  // namespace

void leave_symbol_files_alone() {
  opens_symbol_files = false;
}

Symbols::Symbols(const Definitions& definitions)
    : definitions_(definitions), names_(definitions.locations.size()), modules_(definitions.modules.size()) {}

std::string Symbols::text(StringId id) const {
  return std::string(definitions_.text(id));
}

std::vector<LocationId> frames_of(const Definitions& definitions, StackId stack) {
  std::vector<LocationId> frames;
  while (stack.value < definitions.stacks.size()) {
    const StackNode& node = definitions.stacks[stack.value];
    frames.push_back(node.location);
    if (node.parent.valid() && node.parent.value >= stack.value) break;  // would not end
    stack = node.parent;
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

FrameName Symbols::resolve(const Location& location) {
  FrameName name;
  name.kind = location.kind == Location::Kind::python ? Location::Kind::python : Location::Kind::native;
  if (location.kind != Location::Kind::native) {
    name.function = text(location.function);
    name.file = text(location.file);
    name.line = location.line;
    name.graph = location.graph;
    name.source_nodes = text(location.source_nodes);
    name.is_module = location.nn_module.valid() && !location.file.valid();
    if (name.function.empty()) name.function = "(unknown function)";
    return name;
  }
  if (location.module.value >= modules_.size()) {
    name.function = fmt::format("0x{:x}", location.offset);
    return name;
  }
  const ModuleInfo& info = definitions_.modules[location.module.value];
  Module& module = modules_[location.module.value];
  name.file = text(info.path);
  if (!std::exchange(module.tried, true)) {
    auto opened = ElfSymbols::open(name.file, info.build_id);
    if (opened) {
      module.symbols = std::move(*opened);
    } else {
      module.error = opened.error().message;
    }
  }
  if (module.symbols) {
    if (auto function = module.symbols->function_at(location.offset)) {
      name.function = std::move(*function);
      return name;
    }
  }
  ++module.unnamed;
  name.function = fmt::format("{}+0x{:x}", base_name(name.file), location.offset);
  return name;
}

const FrameName& Symbols::name(LocationId location) {
  static const FrameName kUnknown = {.function = "(unknown)", .file = {}};
  if (location.value >= names_.size()) return kUnknown;
  std::unique_ptr<FrameName>& entry = names_[location.value];
  if (!entry) entry = std::make_unique<FrameName>(resolve(definitions_.locations[location.value]));
  return *entry;
}

std::vector<MissingSymbols> Symbols::missing() const {
  std::vector<MissingSymbols> missing;
  for (std::size_t index = 0; index < modules_.size(); ++index) {
    const Module& module = modules_[index];
    if (module.unnamed == 0) continue;
    missing.push_back({text(definitions_.modules[index].path), module.error, module.unnamed});
  }
  std::sort(missing.begin(), missing.end(),
            [](const MissingSymbols& left, const MissingSymbols& right) { return left.path < right.path; });
  return missing;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

struct ElfFunction {
  std::uint64_t address;
  std::uint64_t size;
  std::uint32_t name;  // offset into the string table
  std::uint8_t rank;   // selects among several names of one address: the smallest is shown
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

// Global names before weak before local ones: usual names of functions.
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
  if (!opens_symbol_files) return Error{"is outside of what this process reads"};
  auto impl = std::make_unique<Impl>();
  auto file = open_regular_file(path);  // a path from the recording
  if (!file) return file.error();
  impl->file = std::move(*file);
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
