#include "phantom/gpu/fat_binary.h"

#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "phantom/gpu/bytes.h"

namespace tidemark::phantom {
namespace {

// NVIDIA does not document the format. The layout below is what the bytes of libtorch_cuda.so (CUDA 13.0 and 13.2) and
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

std::string_view fat_binary_of(const void* registered) {
  Wrapper wrapper;
  std::memcpy(&wrapper, registered, sizeof wrapper);
  if (wrapper.magic != kWrapperMagic || wrapper.fat_binary == nullptr) return {};
  Header header;
  std::memcpy(&header, wrapper.fat_binary, sizeof header);
  if (header.magic != kMagic) return {};
  return {wrapper.fat_binary + header.header_bytes, header.bytes};
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

std::optional<std::string> cubin_of(const Entry& entry, std::string_view bytes) {
  if ((entry.flags & kLz4) != 0) return std::nullopt;
  if ((entry.flags & kZstd) == 0) return std::string(bytes);
  std::string cubin(entry.full_bytes, '\0');
  const std::size_t written =
      ZSTD_decompress(cubin.data(), cubin.size(), bytes.data(), bytes_at(bytes, 0, entry.compressed_bytes).size());
  if (written != cubin.size()) return std::nullopt;
  return cubin;
}

}  // namespace

std::optional<DeviceCode> choose_code(const void* wrapper, int major, int minor) {
  const std::string_view bytes = fat_binary_of(wrapper);
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
