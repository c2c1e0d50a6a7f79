#include "phantom/standins/needed_symbols.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>

#include "base/scoped_fd.h"

namespace tidemark {
namespace {

struct ElfFile {
  ScopedFd file;
  Elf* elf = nullptr;

  ElfFile() = default;
  ElfFile(ElfFile&& other) noexcept : file(std::move(other.file)), elf(std::exchange(other.elf, nullptr)) {}
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile() {
    if (elf != nullptr) elf_end(elf);
  }

  struct Section {
    GElf_Shdr header{};
    Elf_Data* data = nullptr;
  };
  /// The first section of a type; without data when there is none.
  [[nodiscard]] Section section(std::uint32_t type) const {
    for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf, at)) != nullptr;) {
      Section found;
      if (gelf_getshdr(at, &found.header) == nullptr || found.header.sh_type != type) continue;
      found.data = elf_getdata(at, nullptr);
      return found;
    }
    return {};
  }
  [[nodiscard]] std::string text(std::size_t section, std::size_t offset) const {
    const char* const found = elf_strptr(elf, section, offset);
    return found == nullptr ? std::string() : found;
  }
};

Result<ElfFile> open_elf(const std::string& path) {
  ElfFile file;
  file.file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.file) return Error{fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  if (elf_version(EV_CURRENT) == EV_NONE) return Error{"libelf is too old"};
  file.elf = elf_begin(file.file.get(), ELF_C_READ_MMAP, nullptr);
  GElf_Ehdr header;
  if (file.elf == nullptr || gelf_getehdr(file.elf, &header) == nullptr || header.e_type != ET_DYN)
    return Error{fmt::format("{}: is not a shared library", path)};
  if (header.e_machine != EM_X86_64) return Error{fmt::format("{}: is not a library for x86-64", path)};
  return file;
}

// The versions that a file needs; and number of a symbol's version -> the library that has it.
struct NeededVersions {
  std::map<std::string, std::string> by_library;
  std::map<int, std::string> libraries;
};

NeededVersions needed_versions(const ElfFile& file) {
  NeededVersions versions;
  const ElfFile::Section section = file.section(SHT_GNU_verneed);
  if (section.data == nullptr) return versions;
  int at = 0;
  for (std::size_t entry = 0; entry < section.header.sh_info; ++entry) {
    GElf_Verneed need;
    if (gelf_getverneed(section.data, at, &need) == nullptr) break;
    int version_at = at + static_cast<int>(need.vn_aux);
    for (int index = 0; index < need.vn_cnt; ++index) {
      GElf_Vernaux version;
      if (gelf_getvernaux(section.data, version_at, &version) == nullptr) break;
      const std::string library = file.text(section.header.sh_link, need.vn_file);
      versions.by_library[library] = file.text(section.header.sh_link, version.vna_name);
      versions.libraries[version.vna_other & 0x7fff] = library;
      version_at += static_cast<int>(version.vna_next);
    }
    at += static_cast<int>(need.vn_next);
  }
  return versions;
}

std::vector<std::string> needed_libraries(const ElfFile& file) {
  std::vector<std::string> libraries;
  const ElfFile::Section section = file.section(SHT_DYNAMIC);
  if (section.data == nullptr) return libraries;
  GElf_Dyn entry;
  for (int index = 0; gelf_getdyn(section.data, index, &entry) != nullptr; ++index)
    if (entry.d_tag == DT_NEEDED) libraries.push_back(file.text(section.header.sh_link, entry.d_un.d_val));
  return libraries;
}

}  // namespace

Result<NeededSymbols> read_needed_symbols(const std::string& path) {
  const Result<ElfFile> file = open_elf(path);
  if (!file) return file.error();
  NeededSymbols needed;
  needed.libraries = needed_libraries(*file);
  NeededVersions known = needed_versions(*file);
  needed.versions = std::move(known.by_library);
  const ElfFile::Section symbols = file->section(SHT_DYNSYM);
  const ElfFile::Section versions = file->section(SHT_GNU_versym);
  GElf_Sym symbol;
  for (int index = 1; symbols.data != nullptr && gelf_getsym(symbols.data, index, &symbol) != nullptr; ++index) {
    if (symbol.st_shndx != SHN_UNDEF) continue;
    NeededSymbol entry{file->text(symbols.header.sh_link, symbol.st_name), {}};
    GElf_Versym version = 0;
    if (versions.data != nullptr && gelf_getversym(versions.data, index, &version) != nullptr)
      if (const auto found = known.libraries.find(version & 0x7fff); found != known.libraries.end())
        entry.library = found->second;
    if (!entry.name.empty()) needed.symbols.push_back(std::move(entry));
  }
  return needed;
}

Result<std::vector<std::string>> read_exported_functions(const std::string& path) {
  const Result<ElfFile> file = open_elf(path);
  if (!file) return file.error();
  std::vector<std::string> names;
  const ElfFile::Section symbols = file->section(SHT_DYNSYM);
  GElf_Sym symbol;
  for (int index = 1; symbols.data != nullptr && gelf_getsym(symbols.data, index, &symbol) != nullptr; ++index)
    if (symbol.st_shndx != SHN_UNDEF && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
      names.push_back(file->text(symbols.header.sh_link, symbol.st_name));
  return names;
}

std::vector<std::string> read_function_names(const std::string& path, const std::string& prefix) {
  std::vector<std::string> names;
  const Result<ElfFile> file = open_elf(path);
  if (!file) return names;
  const auto is_name = [&prefix](std::string_view text) {
    // A name has a capital letter after the prefix and some length: what is shorter may be anything.
    constexpr std::size_t kShortest = 6;
    if (text.size() < kShortest || !text.starts_with(prefix)) return false;
    if (std::isupper(static_cast<unsigned char>(text[prefix.size()])) == 0) return false;
    return std::all_of(text.begin(), text.end(),
                       [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; });
  };
  for (Elf_Scn* at = nullptr; (at = elf_nextscn(file->elf, at)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(at, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
    if ((header.sh_flags & SHF_ALLOC) == 0 || (header.sh_flags & (SHF_EXECINSTR | SHF_WRITE)) != 0) continue;
    const Elf_Data* const data = elf_getdata(at, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    std::string_view left(static_cast<const char*>(data->d_buf), data->d_size);
    for (std::size_t end = 0; (end = left.find('\0')) != std::string_view::npos; left.remove_prefix(end + 1))
      if (const std::string_view text = left.substr(0, end); is_name(text)) names.emplace_back(text);
  }
  return names;
}

}  // namespace tidemark
