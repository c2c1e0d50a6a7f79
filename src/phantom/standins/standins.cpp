#include "phantom/standins/standins.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/regular_file.h"
#include "base/result.h"
#include "base/scoped_fd.h"
#include "phantom/standins/library_writer.h"

namespace tidemark {

namespace {

/// A function that a library needs when it is loaded.
struct NeededSymbol {
  std::string name;
  std::string library;  ///< the library in the symbol's version ("libcudart.so.13"); empty for symbols without a
                        ///< version
};

struct NeededSymbols {
  std::vector<std::string> libraries;           ///< DT_NEEDED, in order
  std::map<std::string, std::string> versions;  ///< by library: the version that it must define ("libcudart.so.13")
  std::vector<NeededSymbol> symbols;
};

/// Reads an ELF file of this machine's architecture. The error names the file, also if it is not a shared library.
/// Reads only headers and symbol tables, of files of any size.
[[nodiscard]] Result<NeededSymbols> read_needed_symbols(const std::string& path);

/// Names of the functions that a library exports.
[[nodiscard]] Result<std::vector<std::string>> read_exported_functions(const std::string& path);

/// Names that a library may look up at run time: the strings in its data that look like functions of `prefix`
/// ("cuMemCreate" for "cu"). Empty if the file cannot be read. Reads the whole file.
[[nodiscard]] std::vector<std::string> read_function_names(const std::string& path, const std::string& prefix);

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
  /// The first section of a type; without data if there is none.
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
  auto opened = open_regular_file(path);
  if (!opened) return Error{fmt::format("{}: {}", path, opened.error().message)};
  file.file = std::move(*opened);
  if (elf_version(EV_CURRENT) == EV_NONE) return Error{"libelf is too old"};
  file.elf = elf_begin(file.file.get(), ELF_C_READ_MMAP, nullptr);
  GElf_Ehdr header;
  if (file.elf == nullptr || gelf_getehdr(file.elf, &header) == nullptr || header.e_type != ET_DYN)
    return Error{fmt::format("{}: is not a shared library", path)};
  if (header.e_machine != EM_X86_64) return Error{fmt::format("{}: is not a library for x86-64", path)};
  return file;
}

// The versions that a file needs; and number of a symbol's version -> the library that defines it.
struct NeededVersions {
  std::map<std::string, std::string> by_library;
  std::map<int, std::string> libraries;
};

NeededVersions needed_versions(const ElfFile& file) {
  NeededVersions versions;
  const ElfFile::Section section = file.section(SHT_GNU_verneed);
  if (section.data == nullptr) return versions;
  // Valid offsets increase and stay in the file: others could make the loop take two billion turns.
  const auto size = std::min<std::size_t>(section.data->d_size, std::numeric_limits<int>::max());
  std::size_t versions_left = size / sizeof(Elf64_Vernaux);
  std::size_t at = 0;
  for (std::size_t entry = 0; entry < section.header.sh_info; ++entry) {
    GElf_Verneed need;
    if (at >= size || gelf_getverneed(section.data, static_cast<int>(at), &need) == nullptr) break;
    std::size_t version_at = at + need.vn_aux;
    for (int index = 0; index < need.vn_cnt && versions_left > 0; ++index, --versions_left) {
      GElf_Vernaux version;
      if (version_at >= size || gelf_getvernaux(section.data, static_cast<int>(version_at), &version) == nullptr) break;
      const std::string library = file.text(section.header.sh_link, need.vn_file);
      versions.by_library[library] = file.text(section.header.sh_link, version.vna_name);
      versions.libraries[version.vna_other & 0x7fff] = library;
      if (version.vna_next == 0) break;
      version_at += version.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
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
    // A name has a capital letter after the prefix and a minimum length: shorter strings may be anything.
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

/// A library of NVIDIA's, identified by the beginning of its name.
struct VendorLibrary {
  const char* stem;    ///< "libcudart": the part before ".so"
  const char* prefix;  ///< of its functions, if some release has them without versions; else empty
};

/// The library with a SONAME, or null if it is not NVIDIA's.
[[nodiscard]] const VendorLibrary* vendor_library(const std::string& soname);
/// The library of a function without a version, by its name; null if it is not NVIDIA's.
[[nodiscard]] const VendorLibrary* vendor_library_of_function(const std::string& function);

/// The implementation of a function that libtidemark_phantom.so does not have.
[[nodiscard]] StandinFunction standin_function(const std::string& function);

// Longer stems come before their prefixes.
constexpr VendorLibrary kLibraries[] = {
    {"libcudart", ""},
    {"libcublasLt", ""},
    {"libcublas", ""},
    {"libcudnn", ""},
    {"libcusparseLt", "cusparseLt"},
    {"libcusparse", ""},
    {"libcusolver", ""},
    {"libcufft", ""},
    {"libcurand", ""},
    {"libnvrtc", ""},
    {"libnvJitLink", ""},
    {"libnvToolsExt", "nvtx"},
    {"libnccl", "nccl"},
    {"libnvshmem_host", "nvshmem"},
    {"libcufile", "cuFile"},
    {"libcupti", ""},
    {"libnvidia-ml", "nvml"},
    {"libcuda", "cu"},
};

struct Rule {
  const char* pattern;
  StandinFunction what;
};

// Shell patterns; the first that matches decides. A function without a match fails and prints its name.
constexpr Rule kRules[] = {
    // Sizes that determine allocations need individual implementations.
    {"*[wW]ork[sS]pace*Size*", StandinFunction::fail},
    {"*[bB]uffer[sS]ize*", StandinFunction::fail},
    {"*GetSize*", StandinFunction::fail},
    {"cu*Get[A-Z]*", StandinFunction::fail},
    {"cublasLt*Create*", StandinFunction::create_handle},
    {"cublasLt*Init", StandinFunction::fail},
    {"cublas*", StandinFunction::succeed},
    {"cudnnCreate*", StandinFunction::create_handle},
    {"cudnnFind*", StandinFunction::fail},
    {"cudnn*", StandinFunction::succeed},
    {"cusparseCreate*", StandinFunction::create_handle},
    {"cusparseSp*_createDescr", StandinFunction::create_handle},
    {"cusparseSp*_destroyDescr", StandinFunction::succeed},
    {"cusparseSpM[MV]", StandinFunction::succeed},
    {"cusparseSpS[MV]_*", StandinFunction::succeed},
    {"cusparseSpGEMM_copy", StandinFunction::succeed},
    {"cusparseSDDMM*", StandinFunction::succeed},
    {"cusparseSpMatSet*", StandinFunction::succeed},
    {"cusparseCsrSet*", StandinFunction::succeed},
    {"cusparseDnMatSet*", StandinFunction::succeed},
    {"cusparseXcoo2csr", StandinFunction::succeed},
    {"cusparse[SDCZ]csrgeam2", StandinFunction::succeed},
    {"cusparse[SDCZ]bsrm[mv]", StandinFunction::succeed},
    {"cusparseDestroy*", StandinFunction::succeed},
    {"cusparseSet*", StandinFunction::succeed},
    {"cusolverDnCreate*", StandinFunction::create_handle},
    {"cusolverDn*", StandinFunction::succeed},
    {"cufftDestroy", StandinFunction::succeed},
    {"cufftSet*", StandinFunction::succeed},
    {"cufftXtExec*", StandinFunction::succeed},
    {"cuptiActivity*", StandinFunction::succeed},
    {"nvtx*", StandinFunction::succeed},
};

bool begins_with_word(const std::string& text, const std::string& stem) {
  return text.starts_with(stem) && (text.size() == stem.size() || text[stem.size()] == '.');
}

const VendorLibrary* vendor_library(const std::string& soname) {
  for (const VendorLibrary& library : kLibraries)
    if (begins_with_word(soname, library.stem)) return &library;
  return nullptr;
}

const VendorLibrary* vendor_library_of_function(const std::string& function) {
  const std::string name = function.starts_with("pnccl") ? function.substr(1) : function;
  for (const VendorLibrary& library : kLibraries) {
    const std::string prefix = library.prefix;
    if (prefix.empty() || !name.starts_with(prefix)) continue;
    // cuInit is the driver's; cudaMalloc and cublasCreate are not, and have versions that name their libraries.
    if (prefix == "cu" && (name.size() < 3 || name[2] < 'A' || name[2] > 'Z')) continue;
    return &library;
  }
  return nullptr;
}

StandinFunction standin_function(const std::string& function) {
  for (const Rule& rule : kRules)
    if (fnmatch(rule.pattern, function.c_str(), 0) == 0) return rule.what;
  return StandinFunction::fail;
}

namespace fs = std::filesystem;

struct NeededLibrary {
  std::set<std::string> functions;  // functions looked up in it
  std::optional<std::string> version;
};
using Needed = std::map<std::string, NeededLibrary>;  // by SONAME

void collect(const NeededSymbols& symbols, Needed& needed) {
  std::map<const VendorLibrary*, std::string> without_versions;
  for (const std::string& library : symbols.libraries) {
    const VendorLibrary* const vendor = vendor_library(library);
    if (vendor == nullptr) continue;
    needed[library];
    without_versions[vendor] = library;
  }
  for (const NeededSymbol& symbol : symbols.symbols) {
    if (!symbol.library.empty()) {
      if (vendor_library(symbol.library) != nullptr) needed[symbol.library].functions.insert(symbol.name);
      continue;
    }
    const auto found = without_versions.find(vendor_library_of_function(symbol.name));
    if (found != without_versions.end()) needed[found->second].functions.insert(symbol.name);
  }
  for (const auto& [library, version] : symbols.versions)
    if (vendor_library(library) != nullptr) needed[library].version = version;
}

std::vector<std::string> shared_libraries(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().find(".so") != std::string::npos) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Result<std::vector<std::string>> write_standins(const std::string& folder, const std::string& torch_folder,
                                                const std::vector<std::string>& others, const std::string& phantom) {
  std::vector<std::string> libraries = shared_libraries(torch_folder + "/lib");
  if (libraries.empty())
    return Error{fmt::format("{}/lib: has no libraries; is PyTorch installed there?", torch_folder)};
  libraries.insert(libraries.end(), others.begin(), others.end());
  Needed needed;
  for (const std::string& path : libraries)
    if (const Result<NeededSymbols> symbols = read_needed_symbols(path)) collect(*symbols, needed);
  // Opened by name, and so are their functions: libc10_cuda.so has the names.
  const std::string allocator = torch_folder + "/lib/libc10_cuda.so";
  for (const auto& [library, prefix] : {std::pair{"libcuda.so.1", "cu"}, std::pair{"libnvidia-ml.so.1", "nvml"}}) {
    std::set<std::string>& functions = needed[library].functions;
    for (std::string& name : read_function_names(allocator, prefix)) functions.insert(std::move(name));
  }

  const Result<std::vector<std::string>> exported = read_exported_functions(phantom);
  if (!exported) return exported.error();
  const std::unordered_set<std::string> answered(exported->begin(), exported->end());

  std::vector<std::string> preload = {phantom};
  for (const auto& [soname, what] : needed) {
    const bool versioned = vendor_library(soname)->prefix[0] == '\0';
    StandinLibrary library{soname, what.version.value_or(versioned ? soname : ""), {}};
    for (const std::string& function : what.functions) {
      if (answered.contains(function)) continue;
      library.functions.push_back({function, standin_function(function)});
    }
    const std::string path = fmt::format("{}/{}", folder, soname);
    std::ofstream file(path, std::ios::binary);
    file << write_standin_library(library);
    if (!file.flush()) return Error{fmt::format("{}: cannot be written", path)};
    preload.push_back(path);
  }
  return preload;
}

}  // namespace tidemark
