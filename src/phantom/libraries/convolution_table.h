// The convolutions that were measured.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {

struct MeasuredLayer {
  Convolution shape;                                                ///< its batch size is 0
  std::map<std::int64_t, std::array<std::uint64_t, 3>> workspaces;  ///< bytes by batch size and Pass
};

/// By layer_key(). Read at the first call; thread-safe.
[[nodiscard]] const std::map<std::string, MeasuredLayer>& measured_layers();

}  // namespace tidemark::phantom
