// A ledger over time as layers on top of each other, for pictures and HTML.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"

namespace tidemark {

/// What a layer is coloured as. Libraries have five colours of their own, in order.
enum class LayerColour : std::uint8_t {
  allocated,
  cached,
  library1,
  library2,
  library3,
  library4,
  library5,
  other_libraries,
  context,
  processes,
};

struct LedgerLayer {
  LayerColour colour = LayerColour::allocated;
  std::string words;               ///< printable
  std::vector<std::uint64_t> top;  ///< of each point: the sum of this layer and those below it
};

/// Of a library of LedgerDevice::libraries, else other_libraries.
[[nodiscard]] LayerColour library_colour(const LedgerDevice& device, const std::string& library);

/// From the lowest to the highest; without those that are empty all the time. What is not known is empty.
[[nodiscard]] std::vector<LedgerLayer> ledger_layers(const LedgerDevice& device);

/// The highest of what is used and of the layers.
[[nodiscard]] std::uint64_t highest_bytes(const LedgerDevice& device, const std::vector<LedgerLayer>& layers);

}  // namespace tidemark
