// A graph of cuDNN operations, and the workspace that its execution takes.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark::phantom {

struct CudnnGraph {
  std::vector<int> operations;  ///< cudnnBackendDescriptorType_t of each
};

/// Bytes of the workspace that cuDNN asks for.
[[nodiscard]] std::uint64_t cudnn_workspace(const CudnnGraph& graph);

}  // namespace tidemark::phantom
