#include "loading/element_conversion.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tidemark {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;  // of float32
constexpr std::uint16_t kNaN = 0x7fff;           // as devices write it

std::uint16_t float16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t size = bits & 0x7fffffff;
  if (size > kInfinity) return kNaN;
  std::uint32_t rounded = 0x7c00;  // infinity
  if (size < 0x38800000) {         // below 2^-14: rounds to steps of 2^-24 by adding 0.5
    rounded = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
  } else if (size < 0x477ff000) {  // 65520 is rounded to infinity
    rounded = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | rounded);
}

std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > kInfinity) return kNaN;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float element(ElementType type, const std::byte* from) {
  if (type == ElementType::uint8) return static_cast<float>(std::to_integer<int>(*from));
  float value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

const char* element_name(ElementType type) {
  switch (type) {
    case ElementType::uint8:
      return "uint8";
    case ElementType::float32:
      return "float32";
    case ElementType::float16:
      return "float16";
    case ElementType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::uint8:
      return 1;
    case ElementType::float32:
      return 4;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
  }
  return 0;
}

Result<std::size_t> converted_bytes(const ElementConversion& conversion, std::size_t bytes) {
  const bool from_known = conversion.from == ElementType::uint8 || conversion.from == ElementType::float32;
  const bool to_known = conversion.to != ElementType::uint8 && element_bytes(conversion.to) != 0;
  if (!from_known || !to_known) {
    return Error{fmt::format("no conversion from {} to {}: from uint8 or float32 to float32, float16 or bfloat16",
                             element_name(conversion.from), element_name(conversion.to))};
  }
  const std::size_t each = element_bytes(conversion.from);
  if (bytes % each != 0) return Error{fmt::format("{} bytes are no array of {}", bytes, element_name(conversion.from))};
  return bytes / each * element_bytes(conversion.to);
}

float addend(const ElementConversion& conversion) {
  return conversion.offset == 0 ? -0.0f : conversion.offset;
}

void convert(const ElementConversion& conversion, std::span<const std::byte> from, std::byte* to) {
  const std::size_t step = element_bytes(conversion.from);
  const float added = addend(conversion);
  for (std::size_t at = 0; at + step <= from.size(); at += step) {
    const float value = std::fma(element(conversion.from, &from[at]), conversion.scale, added);
    if (conversion.to == ElementType::float32) {
      std::memcpy(to, &value, sizeof(value));
    } else {
      const std::uint16_t bits = conversion.to == ElementType::float16 ? float16_bits(value) : bfloat16_bits(value);
      std::memcpy(to, &bits, sizeof(bits));
    }
    to += element_bytes(conversion.to);
  }
}

}  // namespace tidemark
