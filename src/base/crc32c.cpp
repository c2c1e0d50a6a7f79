#include "base/crc32c.h"

#include <array>

namespace tidemark {
namespace {

// Reflected Castagnoli polynomial. A byte-wise table is enough: only compressed bytes are checksummed.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t value = n;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
    table[n] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  std::uint32_t value = ~seed;
  for (const std::byte byte : bytes) value = kTable[(value ^ static_cast<std::uint32_t>(byte)) & 0xFFU] ^ (value >> 8);
  return ~value;
}

}  // namespace tidemark
