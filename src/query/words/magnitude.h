// A difference without its sign, for texts that say the sign in words.
#pragma once

#include <cstdint>

namespace tidemark {

/// Of the smallest number too.
[[nodiscard]] constexpr std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace tidemark
