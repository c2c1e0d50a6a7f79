// Variable-length integers: LEB128 (seven bits a byte, least significant first, top bit = more follows), and the
// zig-zag mapping that gives small negative numbers small codes (0, -1, 1, -2 … become 0, 1, 2, 3 …).
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tidemark {

/// Longest encoding of a 64-bit value.
inline constexpr std::size_t kMaxVarintBytes = 10;

[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t code) {
  return static_cast<std::int64_t>((code >> 1) ^ (0 - (code & 1)));
}

/// zigzag(to - from), wrapping around: any pair of values survives the round trip.
[[nodiscard]] constexpr std::uint64_t delta_code(std::uint64_t from, std::uint64_t to) {
  return zigzag(static_cast<std::int64_t>(to - from));
}
[[nodiscard]] constexpr std::uint64_t apply_delta(std::uint64_t from, std::uint64_t code) {
  return from + static_cast<std::uint64_t>(unzigzag(code));
}

/// Writes `value` at `out`, which has room for kMaxVarintBytes; returns the position after it.
inline std::uint8_t* put_varint(std::uint8_t* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

/// Reads a value at `in`, with at least kMaxVarintBytes of readable memory, and advances `in`. An encoding longer than
/// ten bytes, or with bits beyond the 64th, gives some value and leaves `in` somewhere within those ten bytes: the
/// caller detects this at the end of the column by its length.
inline std::uint64_t get_varint(const std::uint8_t*& in) {
  static_assert(std::endian::native == std::endian::little, "the trace reader needs a little-endian machine");
  const std::uint64_t first = *in;
  if (first < 0x80) {
    ++in;
    return first;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, in, sizeof word);
  const std::uint64_t last_bytes = ~word & 0x8080'8080'8080'8080U;
  if (last_bytes != 0) {
    // Two to eight bytes, without a branch on their number: keep the bytes up to the last, then close the gaps of one
    // bit.
    word &= last_bytes ^ (last_bytes - 1);
    in += (std::countr_zero(last_bytes) >> 3) + 1;
    word = (word & 0x007F'007F'007F'007FU) | ((word & 0x7F00'7F00'7F00'7F00U) >> 1);
    word = (word & 0x0000'3FFF'0000'3FFFU) | ((word & 0x3FFF'0000'3FFF'0000U) >> 2);
    return (word & 0x0FFF'FFFFU) | ((word >> 4) & 0x00FF'FFFF'F000'0000U);
  }
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    const std::uint64_t byte = *in++;
    value |= (byte & 0x7F) << (shift < 64 ? shift : 63);
    if (byte < 0x80) break;
  }
  return value;
}

template <std::unsigned_integral T>
void store_le(std::byte* out, T value) {
  for (std::size_t n = 0; n < sizeof(T); ++n) out[n] = static_cast<std::byte>((value >> (8 * n)) & 0xFF);
}

template <std::unsigned_integral T>
[[nodiscard]] T load_le(const std::byte* in) {
  T value = 0;
  for (std::size_t n = 0; n < sizeof(T); ++n) value = static_cast<T>(value | (static_cast<T>(in[n]) << (8 * n)));
  return value;
}

}  // namespace tidemark
