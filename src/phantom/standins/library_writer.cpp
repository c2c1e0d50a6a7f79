#include "phantom/standins/library_writer.h"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tidemark {
namespace {

constexpr std::size_t kPage = 4096;
constexpr const char* kPhantom = "libtidemark_phantom.so";

class StringTable {
 public:
  std::uint32_t add(const std::string& text) {
    const auto offset = static_cast<std::uint32_t>(bytes_.size());
    bytes_.append(text).push_back('\0');
    return offset;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

template <typename Record>
void append(std::string& to, const Record& record) {
  to.append(reinterpret_cast<const char*>(&record), sizeof record);
}

// The hash function of the gABI, for DT_HASH and for versions.
std::uint32_t elf_hash(const std::string& name) {
  std::uint32_t hash = 0;
  for (const char letter : name) {
    hash = (hash << 4) + static_cast<unsigned char>(letter);
    const std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

// Offset from the end of an instruction at `at` that is `length` bytes long.
void append_relative(std::string& code, std::uint64_t at, std::size_t length, std::uint64_t target) {
  append(code, static_cast<std::int32_t>(static_cast<std::int64_t>(target) - static_cast<std::int64_t>(at + length)));
}

// The functions of libtidemark_phantom.so that stubs jump to, in the order of their slots.
constexpr std::array<const char*, 2> kTargets = {"tidemark_phantom_unanswered", "tidemark_phantom_create_handle"};

std::string stub(StandinFunction what, std::uint64_t address, std::uint64_t name, std::uint64_t slots) {
  std::string code;
  switch (what) {
    case StandinFunction::succeed:
      code.append("\x31\xc0\xc3", 3);  // xor eax, eax; ret
      break;
    case StandinFunction::create_handle:
      code.append("\xff\x25", 2);  // jmp [rip + slot]
      append_relative(code, address, 6, slots + 8);
      break;
    case StandinFunction::fail:
      code.append("\x48\x8d\x3d", 3);  // lea rdi, [rip + name]
      append_relative(code, address, 7, name);
      code.append("\xff\x25", 2);
      append_relative(code, address + 7, 6, slots);
      break;
  }
  code.resize(16, '\xcc');
  return code;
}

struct Section {
  const char* name;
  std::uint32_t type;
  std::uint64_t flags;
  std::uint32_t link;  // number of the section that it refers to
  std::uint32_t info;
  std::uint64_t entry_size;
  std::string bytes;
  std::uint64_t address = 0;
};

// Sections in the order of the file; the number is that of the section header.
enum Number : std::uint32_t {
  kHash = 1,
  kSymbols,
  kStrings,
  kVersions,
  kDefinitions,
  kRelocations,
  kText,
  kDynamic,
  kSlots,
  kNames
};

}  // namespace

std::string write_standin_library(const StandinLibrary& library) {
  StringTable strings;
  const std::uint32_t soname = strings.add(library.soname);
  const std::uint32_t needed = strings.add(kPhantom);
  const std::uint32_t version = library.version.empty() ? 0 : strings.add(library.version);

  // Symbols: null, the targets of the jumps (undefined), the functions.
  std::vector<Elf64_Sym> symbols(1);
  std::vector<std::string> names(1);
  for (const char* target : kTargets) {
    symbols.push_back({strings.add(target), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, SHN_UNDEF, 0, 0});
    names.emplace_back(target);
  }
  const std::size_t first = symbols.size();
  for (const StandinLibrary::Function& function : library.functions) {
    symbols.push_back({strings.add(function.name), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, kText, 0, 16});
    names.push_back(function.name);
  }

  std::vector<Section> sections = {
      {".hash", SHT_HASH, SHF_ALLOC, kSymbols, 0, 4, {}},
      {".dynsym", SHT_DYNSYM, SHF_ALLOC, kStrings, 1, sizeof(Elf64_Sym), {}},
      {".dynstr", SHT_STRTAB, SHF_ALLOC, 0, 0, 0, strings.bytes()},
      {".gnu.version", SHT_GNU_versym, SHF_ALLOC, kSymbols, 0, 2, {}},
      {".gnu.version_d", SHT_GNU_verdef, SHF_ALLOC, kStrings, 2, 0, {}},
      {".rela.dyn", SHT_RELA, SHF_ALLOC, kSymbols, 0, sizeof(Elf64_Rela), {}},
      {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0, 0, {}},
      {".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, kStrings, 0, sizeof(Elf64_Dyn), {}},
      {".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, 0, 8, {}},
      {".shstrtab", SHT_STRTAB, 0, 0, 0, 0, {}},
  };
  const auto section = [&sections](Number number) -> Section& { return sections[number - 1]; };

  // Sizes first: addresses follow from them.
  const bool versioned = version != 0;
  section(kHash).bytes.resize(4 * (2 + 2 * symbols.size()));
  section(kSymbols).bytes.resize(sizeof(Elf64_Sym) * symbols.size());
  if (versioned) section(kVersions).bytes.resize(2 * symbols.size());
  if (versioned) section(kDefinitions).bytes.resize(2 * (sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux)));
  section(kRelocations).bytes.resize(sizeof(Elf64_Rela) * kTargets.size());
  section(kText).bytes.resize(16 * library.functions.size());
  section(kDynamic).bytes.resize(sizeof(Elf64_Dyn) * 14);
  section(kSlots).bytes.resize(8 * kTargets.size());
  StringTable section_names;
  std::vector<std::uint32_t> section_name_at;
  section_name_at.reserve(sections.size());
  for (const Section& each : sections) section_name_at.push_back(section_names.add(each.name));
  section(kNames).bytes = section_names.bytes();

  constexpr std::size_t kSegments = 5;
  std::uint64_t at = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);
  for (Section& each : sections) {
    // Code and writable data have their own pages; offsets in the file are addresses.
    if (&each == &section(kText) || &each == &section(kDynamic)) at = (at + kPage - 1) / kPage * kPage;
    at = (at + 15) / 16 * 16;
    each.address = at;
    at += each.bytes.size();
  }
  const std::uint64_t headers_at = (at + 15) / 16 * 16;

  std::string code;
  for (std::size_t index = 0; index < library.functions.size(); ++index) {
    Elf64_Sym& symbol = symbols[first + index];
    symbol.st_value = section(kText).address + 16 * index;
    code += stub(library.functions[index].what, symbol.st_value, section(kStrings).address + symbol.st_name,
                 section(kSlots).address);
  }
  section(kText).bytes = code;

  std::string& table = section(kSymbols).bytes;
  table.clear();
  for (const Elf64_Sym& symbol : symbols) append(table, symbol);

  // As many buckets as symbols: the dynamic linker looks up most names of libraries loaded later here, without finding
  // them.
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> buckets(count);
  std::vector<std::uint32_t> chains(count);
  for (auto index = static_cast<std::uint32_t>(first); index < count; ++index) {
    chains[index] = std::exchange(buckets[elf_hash(names[index]) % count], index);
  }
  std::string& hash = section(kHash).bytes;
  hash.clear();
  append(hash, count);
  append(hash, count);
  for (const std::uint32_t bucket : buckets) append(hash, bucket);
  for (const std::uint32_t chain : chains) append(hash, chain);

  if (versioned) {
    std::string& versions = section(kVersions).bytes;
    versions.clear();
    for (std::size_t index = 0; index < symbols.size(); ++index)
      append(versions, static_cast<std::uint16_t>(index == 0 ? 0 : index < first ? 1 : 2));
    std::string& definitions = section(kDefinitions).bytes;
    definitions.clear();
    constexpr std::uint32_t kStep = sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux);
    append(definitions, Elf64_Verdef{1, VER_FLG_BASE, 1, 1, elf_hash(library.soname), sizeof(Elf64_Verdef), kStep});
    append(definitions, Elf64_Verdaux{soname, 0});
    append(definitions, Elf64_Verdef{1, 0, 2, 1, elf_hash(library.version), sizeof(Elf64_Verdef), 0});
    append(definitions, Elf64_Verdaux{version, 0});
  }

  std::string& relocations = section(kRelocations).bytes;
  relocations.clear();
  for (std::size_t index = 0; index < kTargets.size(); ++index)
    append(relocations, Elf64_Rela{section(kSlots).address + 8 * index, ELF64_R_INFO(index + 1, R_X86_64_GLOB_DAT), 0});

  std::string& dynamic = section(kDynamic).bytes;
  dynamic.clear();
  const auto tag = [&dynamic](std::int64_t name, std::uint64_t value) { append(dynamic, Elf64_Dyn{name, {value}}); };
  tag(DT_SONAME, soname);
  tag(DT_NEEDED, needed);
  tag(DT_HASH, section(kHash).address);
  tag(DT_STRTAB, section(kStrings).address);
  tag(DT_SYMTAB, section(kSymbols).address);
  tag(DT_STRSZ, section(kStrings).bytes.size());
  tag(DT_SYMENT, sizeof(Elf64_Sym));
  tag(DT_RELA, section(kRelocations).address);
  tag(DT_RELASZ, section(kRelocations).bytes.size());
  tag(DT_RELAENT, sizeof(Elf64_Rela));
  if (versioned) {
    tag(DT_VERSYM, section(kVersions).address);
    tag(DT_VERDEF, section(kDefinitions).address);
    tag(DT_VERDEFNUM, 2);
  }
  tag(DT_NULL, 0);

  std::string file(headers_at, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = headers_at;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = kSegments;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size() + 1);
  header.e_shstrndx = kNames;

  const std::uint64_t text = section(kText).address;
  const std::uint64_t data = section(kDynamic).address;
  const std::uint64_t data_end = section(kSlots).address + section(kSlots).bytes.size();
  const auto segment = [](std::uint32_t type, std::uint32_t flags, std::uint64_t from, std::uint64_t to,
                          std::uint64_t align) {
    return Elf64_Phdr{type, flags, from, from, from, to - from, to - from, align};
  };
  std::string head;
  append(head, header);
  append(head, segment(PT_LOAD, PF_R, 0, section(kRelocations).address + section(kRelocations).bytes.size(), kPage));
  append(head, segment(PT_LOAD, PF_R | PF_X, text, text + code.size(), kPage));
  append(head, segment(PT_LOAD, PF_R | PF_W, data, data_end, kPage));
  append(head, segment(PT_DYNAMIC, PF_R | PF_W, data, data + dynamic.size(), 8));
  append(head, segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16));
  file.replace(0, head.size(), head);
  for (const Section& each : sections) file.replace(each.address, each.bytes.size(), each.bytes);

  append(file, Elf64_Shdr{});
  for (std::size_t index = 0; index < sections.size(); ++index) {
    const Section& each = sections[index];
    // A section of versions must not be empty.
    const std::uint32_t type = each.bytes.empty() ? SHT_NULL : each.type;
    append(file, Elf64_Shdr{section_name_at[index], type, each.flags, (each.flags & SHF_ALLOC) != 0 ? each.address : 0,
                            each.address, each.bytes.size(), each.link, each.info, 16, each.entry_size});
  }
  return file;
}

}  // namespace tidemark
