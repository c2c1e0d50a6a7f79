#include "loading/batch_layout.h"

#include <fmt/format.h>

namespace tidemark {
namespace {

constexpr std::size_t kAlignment = 256;  // as cuMemAlloc's

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<BatchLayout> lay_out(std::span<const SourceArray> arrays) {
  BatchLayout layout;
  for (const SourceArray& array : arrays) {
    std::size_t bytes = array.bytes;
    if (array.conversion) {
      const auto converted = converted_bytes(*array.conversion, array.bytes);
      if (!converted) return Error{fmt::format("array {}: {}", layout.places.size(), converted.error().message)};
      bytes = *converted;
    }
    layout.places.push_back({layout.bytes, bytes, layout.bytes});
    layout.bytes += aligned(bytes);
  }
  for (std::size_t index = 0; index < arrays.size(); ++index) {
    if (!arrays[index].conversion) continue;
    layout.places[index].copy = layout.bytes;
    layout.bytes += aligned(arrays[index].bytes);
  }
  return layout;
}

}  // namespace tidemark
