#include "phantom/gpu/device_code.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace tidemark::phantom {

namespace {

// NVIDIA does not document the format. The layout below was derived from libtorch_cuda.so (CUDA 12.1 to 13.2) and from
// files written by nvcc.

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const char* fat_binary;
};
constexpr std::uint32_t kWrapperMagic = 0x466243b1;

struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of the entries, which follow one another
};
constexpr std::uint32_t kMagic = 0xba55ed50;

struct Entry {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;             // to the next entry
  std::uint32_t compressed_bytes;  // 0: not compressed
  std::uint32_t options;
  std::uint16_t minor;  // of the version of the PTX language, or of the cubin's format
  std::uint16_t major;
  std::uint32_t architecture;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t zero;
  std::uint64_t full_bytes;  // when decompressed
};
constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kCubin = 2;
constexpr std::uint64_t kLz4 = 0x2000;
constexpr std::uint64_t kZstd = 0x8000;
constexpr std::uint64_t kExactly = 0x100000;  // sm_90a
constexpr std::uint64_t kFamily = 0x200000;   // sm_100f

template <typename Record>
Record read(const void* from) {
  Record record;
  std::memcpy(&record, from, sizeof record);
  return record;
}

std::string_view fat_binary_at(const void* image) {
  if (read<std::uint32_t>(image) == kWrapperMagic) image = read<Wrapper>(image).fat_binary;
  if (image == nullptr || read<std::uint32_t>(image) != kMagic) return {};
  const auto header = read<Header>(image);
  return {static_cast<const char*>(image) + header.header_bytes, header.bytes};
}

// Higher is better; all zero: not for this GPU.
std::tuple<bool, std::uint32_t, int> fitness(const Entry& entry, std::uint32_t gpu) {
  const bool runs = entry.architecture <= gpu;
  const bool same_major = entry.architecture / 10 == gpu / 10;
  const bool exactly = (entry.flags & kExactly) != 0;
  if (!runs || (exactly && entry.architecture != gpu)) return {};
  if (entry.kind == kPtx) return {false, entry.architecture, 0};
  if (entry.kind != kCubin || !same_major) return {};
  return {true, entry.architecture, exactly ? 3 : (entry.flags & kFamily) != 0 ? 2 : 1};
}

// The bytes of an ELF file; its size follows only from its headers.
std::string_view elf_file_at(const void* image) {
  const auto* const start = static_cast<const char*>(image);
  const auto header = read<Elf64_Ehdr>(image);
  std::size_t end = std::max<std::size_t>(sizeof header, header.e_shoff + sizeof(Elf64_Shdr) * header.e_shnum);
  for (std::size_t index = 0; index < header.e_shnum; ++index) {
    const auto section = read<Elf64_Shdr>(start + header.e_shoff + sizeof(Elf64_Shdr) * index);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return {start, end};
}

std::optional<std::string> cubin_of(const Entry& entry, std::string_view bytes) {
  const std::string_view compressed = bytes_at(bytes, 0, entry.compressed_bytes);
  if ((entry.flags & kLz4) != 0) return decompress_lz4(compressed, entry.full_bytes);
  if ((entry.flags & kZstd) == 0) return std::string(bytes);
  std::string cubin(entry.full_bytes, '\0');
  const std::size_t written = ZSTD_decompress(cubin.data(), cubin.size(), compressed.data(), compressed.size());
  if (written != cubin.size()) return std::nullopt;
  return cubin;
}

// NVIDIA does not document these; `cuobjdump -elf` names them.
constexpr std::uint32_t kInfoSection = SHT_LOPROC;  // .nv.info of the file, .nv.info.KERNEL
constexpr std::uint8_t kSizedValue = 4;             // a value preceded by its number of bytes; others have 2
constexpr std::uint8_t kMaxThreads = 0x05;
constexpr std::uint8_t kCalledOutside = 0x0f;  // external functions: vprintf, __assertfail
constexpr std::uint8_t kFrameSize = 0x11;
constexpr std::uint8_t kRegisterCount = 0x2f;
constexpr std::uint8_t kBarriers = 0x4c;
constexpr std::uint8_t kEntry = 0x10;          // in st_other: a kernel, not a device function
constexpr std::size_t kReservedShared = 1024;  // kept by the driver from a block's shared memory

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
  // The format changed with CUDA 13; GPUs introduced with CUDA 12.8 had it from the start.
  bool newer_ = header_.e_ident[EI_ABIVERSION] >= 8;
  std::vector<Elf64_Shdr> sections_;
  std::map<std::uint32_t, KernelNeeds> by_text_;    // by the number of the section with the kernel's code
  std::map<std::uint32_t, KernelNeeds> by_symbol_;  // by the number of the kernel's symbol
  std::size_t reserved_ = 0;  // included in the size of a section of shared memory, if the file reserves some
};

}  // namespace

std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size) {
  // One byte encodes at most 255 bytes: a size without that many bytes is not reserved.
  constexpr std::size_t kMaxSize = std::numeric_limits<int>::max();
  if (size / 255 > block.size() || size > kMaxSize || block.size() > kMaxSize) return std::nullopt;
  std::string out(size, '\0');
  const int written =
      LZ4_decompress_safe(block.data(), out.data(), static_cast<int>(block.size()), static_cast<int>(size));
  if (written < 0 || static_cast<std::size_t>(written) != size) return std::nullopt;
  return out;
}

std::optional<DeviceCode> choose_code(const void* image, int major, int minor) {
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) return DeviceCode{major * 10 + minor, std::string(elf_file_at(image))};
  const std::string_view bytes = fat_binary_at(image);
  const auto gpu = static_cast<std::uint32_t>(major * 10 + minor);
  std::tuple<bool, std::uint32_t, int> best;
  Entry chosen{};
  std::string_view chosen_code;
  std::size_t at = 0;
  while (const auto entry = record_at<Entry>(bytes, at)) {
    const std::string_view code = bytes_at(bytes, at + entry->header_bytes, entry->bytes);
    if (code.empty()) break;
    if (const auto fit = fitness(*entry, gpu); fit > best) {
      best = fit;
      chosen = *entry;
      chosen_code = code;
    }
    at += entry->header_bytes + entry->bytes;
  }
  DeviceCode result{static_cast<int>(chosen.architecture), {}};
  if (chosen.kind == kPtx) return result;
  if (chosen_code.empty()) return std::nullopt;
  std::optional<std::string> cubin = cubin_of(chosen, chosen_code);
  if (!cubin) return std::nullopt;
  result.cubin = std::move(*cubin);
  return result;
}

Cubin read_cubin(std::string_view file) {
  return Reader(file).read();
}

}  // namespace tidemark::phantom
