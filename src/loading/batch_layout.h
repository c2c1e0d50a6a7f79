// Where the arrays of a batch lie in its memory on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "loading/element_conversion.h"

namespace tidemark {

/// An array of a batch, on the host or on a device.
struct BatchBytes {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

/// An array as its source read it.
struct SourceArray {
  std::uint64_t address = 0;                         ///< in host memory
  std::size_t bytes = 0;                             ///< before it is converted
  std::optional<ElementConversion> conversion = {};  ///< on its way
};

/// Offsets of the arrays: what the program gets comes first, then what is converted, as it was copied.
struct BatchLayout {
  struct Place {
    std::size_t result = 0;        ///< where the program finds it
    std::size_t result_bytes = 0;  ///< converted
    std::size_t copy = 0;          ///< where it is copied to: `result` where it is not converted
  };
  std::vector<Place> places;
  std::size_t bytes = 0;  ///< of all
};

/// An error names the array whose conversion cannot be made.
[[nodiscard]] Result<BatchLayout> lay_out(std::span<const SourceArray> arrays);

}  // namespace tidemark
