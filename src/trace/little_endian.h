// Fixed-width integers in file and frame headers: least significant byte first.
#pragma once

#include <concepts>
#include <cstddef>

namespace tidemark {

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
