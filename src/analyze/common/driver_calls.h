// Whether a recording has the calls of the CUDA driver.
#pragma once

#include <algorithm>

#include "store/store.h"

namespace tidemark {

/// Whether the recording was made with `tidemark run --driver on`. Page-locked memory alone is no evidence: PyTorch's
/// is always recorded.
[[nodiscard]] inline bool has_driver_calls(const Overview& overview) {
  return std::any_of(overview.devices.begin(), overview.devices.end(), [](const DeviceSummary& summary) {
    return is_driver_memory(summary.device) && summary.device.type != DeviceType::cuda_host;
  });
}

}  // namespace tidemark
