// The workspaces that cuDNN takes for convolutions.
#pragma once

#include <cstdint>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {

struct ConvolutionWorkspace {
  std::uint64_t bytes = 0;
  bool measured = false;  ///< exactly this convolution was measured; otherwise `bytes` is an estimate
};

/// The workspace on a GPU of compute capability 9.0 with cuDNN 9.19, which was measured. Thread-safe.
[[nodiscard]] ConvolutionWorkspace convolution_workspace(const Convolution& convolution);

}  // namespace tidemark::phantom
