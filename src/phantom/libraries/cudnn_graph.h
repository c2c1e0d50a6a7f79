// A graph of cuDNN operations, and the workspace that its execution takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {

struct CudnnGraph {
  std::vector<int> operations;             ///< cudnnBackendDescriptorType_t of each
  std::optional<Convolution> convolution;  ///< the one among them
  std::uint64_t summed_elements = 0;  ///< of tensors whose matrices are summed, such as gradients of heads in a group
};

/// Bytes of the workspace that cuDNN asks for. Counts what is an estimate (gpu/usage.h).
[[nodiscard]] std::uint64_t cudnn_workspace(const CudnnGraph& graph);

}  // namespace tidemark::phantom
