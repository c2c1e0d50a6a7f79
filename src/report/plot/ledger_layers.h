// A ledger over time as layers on top of each other.
#pragma once

#include <string>
#include <vector>

#include "analyze/ledger/ledger.h"
#include "report/plot/layers.h"

namespace tidemark {

/// The role of a library of LedgerDevice::libraries; of any other, other_libraries.
[[nodiscard]] Role library_role(const LedgerDevice& device, const std::string& library);

/// From the lowest to the highest; without those that are empty all the time. What is not known is empty.
[[nodiscard]] std::vector<PlotLayer> ledger_layers(const LedgerDevice& device);

}  // namespace tidemark
