// How to recognize a simulated GPU of `tidemark plan`: by its UUID, which no real GPU has.
#pragma once

#include <string_view>

namespace tidemark {

/// The sixteen bytes "tidemark-phanto" without the last two digits, as nvidia-smi -L prints UUIDs; two digits follow,
/// the device's number.
inline constexpr std::string_view kSimulatedGpuUuid = "GPU-74696465-6d61-726b-2d70-68616e746f";

[[nodiscard]] inline bool is_simulated_gpu(std::string_view uuid) {
  return uuid.starts_with(kSimulatedGpuUuid);
}

}  // namespace tidemark
