// Conversion of an array's elements for the program: x * scale + offset in float32, rounded to the nearest number of
// the result type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace tidemark {

enum class ElementType : std::uint8_t { uint8, float32, float16, bfloat16 };

[[nodiscard]] std::size_t element_bytes(ElementType type);
/// As PyTorch calls it.
[[nodiscard]] const char* element_name(ElementType type);

/// From uint8 or float32 to a floating-point type.
struct ElementConversion {
  ElementType from = ElementType::uint8;
  ElementType to = ElementType::float32;
  float scale = 1;
  float offset = 0;  ///< 0: nothing is added, which preserves -0
};

/// Size of an array of `bytes` after conversion. Fails for an unsupported conversion, or if the array does not contain
/// whole elements.
[[nodiscard]] Result<std::size_t> converted_bytes(const ElementConversion& conversion, std::size_t bytes);

/// The addend: x + addend(offset) is x, bit by bit, if the offset is 0.
[[nodiscard]] float addend(const ElementConversion& conversion);

/// Converts on the host, with the results of the device. converted_bytes() is no error, and `to` has as many.
void convert(const ElementConversion& conversion, std::span<const std::byte> from, std::byte* to);

}  // namespace tidemark
