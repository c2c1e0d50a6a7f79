#include "phantom/gpu/cubin.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "phantom/gpu/bytes.h"

namespace tidemark::phantom {
namespace {

// NVIDIA does not document these; `cuobjdump -elf` names them.
constexpr std::uint32_t kInfoSection = SHT_LOPROC;  // .nv.info of the file, .nv.info.KERNEL
constexpr std::uint8_t kSizedValue = 4;             // a value whose number of bytes stands before it; others have 2
constexpr std::uint8_t kMaxThreads = 0x05;
constexpr std::uint8_t kCalledOutside = 0x0f;  // functions that are not in the file: vprintf, __assertfail
constexpr std::uint8_t kFrameSize = 0x11;
constexpr std::uint8_t kRegisterCount = 0x2f;
constexpr std::uint8_t kBarriers = 0x4c;
constexpr std::uint8_t kEntry = 0x10;          // in st_other: a kernel, not a function that kernels call
constexpr std::size_t kReservedShared = 1024;  // that the driver keeps of a block's shared memory

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file), header_(record_at<Elf64_Ehdr>(file, 0).value_or(Elf64_Ehdr{})) {
    for (std::size_t index = 0; index < header_.e_shnum; ++index)
      if (const auto section = record_at<Elf64_Shdr>(file, header_.e_shoff + index * sizeof(Elf64_Shdr)))
        sections_.push_back(*section);
  }

  Cubin read() {
    Cubin cubin;
    cubin.binary_version = static_cast<int>(header_.e_flags >> (newer_ ? 8 : 0) & 0xff);
    if (!newer_) cubin.ptx_version = static_cast<int>(header_.e_flags >> 16 & 0xff);  // else there is a note
    for (const Elf64_Shdr& section : sections_) {
      const std::string_view name = string(header_.e_shstrndx, section.sh_name);
      if (section.sh_type == kInfoSection) {
        read_info(section);
      } else if (name == ".nv.constant3") {
        cubin.constant_bytes = section.sh_size;
      } else if (name == ".nv.shared.reserved.0") {
        reserved_ = kReservedShared;
      } else if (name.starts_with(".nv.shared.")) {
        by_text_[section.sh_info].shared_bytes = section.sh_size;
      } else if (name == ".note.nv.cuinfo") {
        // The note's header and its owner, "NVIDIA Corp", take 24 bytes.
        const auto note = record_at<std::array<std::uint16_t, 2>>(contents(section), 24);
        if (note) cubin.ptx_version = (*note)[1];
      }
    }
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_SYMTAB) read_symbols(section, cubin);
    return cubin;
  }

 private:
  [[nodiscard]] std::string_view contents(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view() : bytes_at(file_, section.sh_offset, section.sh_size);
  }

  [[nodiscard]] std::string_view string(std::size_t table, std::size_t offset) const {
    if (table >= sections_.size()) return {};
    const std::string_view strings = contents(sections_[table]);
    if (offset >= strings.size()) return {};
    return strings.substr(offset, strings.find('\0', offset) - offset);
  }

  void read_info(const Elf64_Shdr& section) {
    struct Attribute {
      std::uint8_t format;
      std::uint8_t what;
      std::uint16_t value;
    };
    const std::string_view bytes = contents(section);
    std::size_t at = 0;
    while (const auto attribute = record_at<Attribute>(bytes, at)) {
      at += sizeof(Attribute);
      if (attribute->format != kSizedValue) {
        if (attribute->what == kBarriers) by_text_[section.sh_info].barriers = attribute->value;
        continue;
      }
      if (attribute->what == kMaxThreads) {
        const auto block = record_at<std::array<std::uint32_t, 3>>(bytes, at);
        if (block) by_text_[section.sh_info].launch_bound = static_cast<int>((*block)[0] * (*block)[1] * (*block)[2]);
      } else if (attribute->what == kCalledOutside) {
        by_text_[section.sh_info].prints = true;
      } else if (attribute->what == kRegisterCount || attribute->what == kFrameSize) {
        const auto value = record_at<std::array<std::uint32_t, 2>>(bytes, at);
        if (!value) return;
        KernelNeeds& needs = by_symbol_[(*value)[0]];
        if (attribute->what == kRegisterCount) needs.registers = static_cast<int>((*value)[1]);
        if (attribute->what == kFrameSize) needs.local_bytes = (*value)[1];
      }
      at += attribute->value;
    }
  }

  void read_symbols(const Elf64_Shdr& section, Cubin& cubin) {
    const std::string_view bytes = contents(section);
    for (std::uint32_t index = 0; const auto symbol = record_at<Elf64_Sym>(bytes, index * sizeof(Elf64_Sym)); ++index) {
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || (symbol->st_other & kEntry) == 0) continue;
      KernelNeeds needs = by_text_[symbol->st_shndx];
      if (!newer_ && symbol->st_shndx < sections_.size())
        needs.barriers = static_cast<int>(sections_[symbol->st_shndx].sh_flags >> 20 & 0x7f);
      if (symbol->st_shndx < sections_.size()) needs.code_bytes = sections_[symbol->st_shndx].sh_size;
      cubin.prints |= needs.prints;
      needs.shared_bytes -= std::min(needs.shared_bytes, reserved_);
      needs.registers = by_symbol_[index].registers;
      needs.local_bytes = by_symbol_[index].local_bytes;
      cubin.kernels.emplace(string(section.sh_link, symbol->st_name), needs);
    }
  }

  std::string_view file_;
  Elf64_Ehdr header_;
  // The format changed with CUDA 13; GPUs that came with CUDA 12.8 had it from the start.
  bool newer_ = header_.e_ident[EI_ABIVERSION] >= 8;
  std::vector<Elf64_Shdr> sections_;
  std::map<std::uint32_t, KernelNeeds> by_text_;    // by the number of the section that holds the kernel's code
  std::map<std::uint32_t, KernelNeeds> by_symbol_;  // by the number of the kernel's symbol
  std::size_t reserved_ = 0;  // of what a section of shared memory says, where the file reserves some
};

}  // namespace

Cubin read_cubin(std::string_view file) {
  return Reader(file).read();
}

}  // namespace tidemark::phantom
