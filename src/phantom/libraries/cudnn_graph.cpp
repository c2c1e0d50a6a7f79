#include "phantom/libraries/cudnn_graph.h"

#include <algorithm>
#include <string>

#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/convolution_workspace.h"

namespace tidemark::phantom {
namespace {

constexpr int kMatmul = 19;  // CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR

// Whether the process has the GPU and the library that convolutions were measured with.
bool is_measured_library() {
  return profile().major == 9 && profile().minor == 0 && profile().cudnn_version / 100 == 919;
}

std::uint64_t workspace_of(const Convolution& convolution) {
  const ConvolutionWorkspace workspace = convolution_workspace(convolution);
  if (!workspace.measured || !is_measured_library())
    count_estimate(Estimate::cudnn_workspace,
                   "a convolution, " + layer_key(convolution) + ", batch size " + std::to_string(convolution.image[0]));
  return workspace.bytes;
}

}  // namespace

std::uint64_t cudnn_workspace(const CudnnGraph& graph) {
  const auto products = std::count(graph.operations.begin(), graph.operations.end(), kMatmul);
  // Attention, forward and backward: with cuDNN 9.19 on an H200 it is at most 512 bytes, which PyTorch rounds any of it
  // up to.
  if (products >= 2) return 16;
  return graph.convolution ? workspace_of(*graph.convolution) : 0;
}

}  // namespace tidemark::phantom
