#include "phantom/gpu/fat_binary.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "phantom/gpu/bytes.h"

namespace tidemark::phantom {
namespace {

// NVIDIA does not document the format. The layout below is what the bytes of libtorch_cuda.so (CUDA 12.1 to 13.2) and
// of files that nvcc writes show.

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

// The bytes of an ELF file, which nothing but its headers tells.
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

}  // namespace

std::optional<std::string> decompress_lz4(std::string_view block, std::size_t size) {
  // No byte stands for more than 255: what a size says without so many is not reserved.
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

}  // namespace tidemark::phantom
