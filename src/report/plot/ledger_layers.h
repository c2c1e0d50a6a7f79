// A ledger over time as layers on top of each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"
#include "report/plot/palette.h"

namespace tidemark {

struct LedgerLayer {
  Role role = Role::allocated;
  std::string words;               ///< printable
  std::vector<std::uint64_t> top;  ///< of each point: the sum of this layer and those below it
};

/// The role of a library of LedgerDevice::libraries; of any other, other_libraries.
[[nodiscard]] Role library_role(const LedgerDevice& device, const std::string& library);

/// From the lowest to the highest; without those that are empty all the time. What is not known is empty.
[[nodiscard]] std::vector<LedgerLayer> ledger_layers(const LedgerDevice& device);

/// The highest of what is used and of the layers.
[[nodiscard]] std::uint64_t highest_bytes(const LedgerDevice& device, const std::vector<LedgerLayer>& layers);

}  // namespace tidemark
