#include "phantom/libraries/cudnn_graph.h"

#include <algorithm>
#include <string>

#include "phantom/gpu/usage.h"
#include "phantom/libraries/convolution_workspace.h"
#include "phantom/libraries/measured_libraries.h"
#include "phantom/libraries/torch_settings.h"

namespace tidemark::phantom {
namespace {

constexpr int kMatmul = 19;  // CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR

// Convolutions were measured as PyTorch starts: with any engine that computes 32-bit floating point by way of TF32 too,
// without trying several. Returns what is otherwise.
std::string other_settings(const Convolution& convolution) {
  const CudnnSettings settings = cudnn_settings();
  std::string text;
  if (settings.deterministic) text += ", deterministic";
  if (settings.benchmark) text += ", benchmark";
  if (!settings.tf32 && convolution.type == type_named("float")) text += ", without TF32";
  return text;
}

std::uint64_t workspace_of(const Convolution& convolution) {
  const ConvolutionWorkspace workspace = convolution_workspace(convolution);
  const std::string settings = other_settings(convolution);
  if (!workspace.measured || !is_measured_cudnn() || !settings.empty())
    count_estimate(Estimate::cudnn_workspace, "a convolution, " + layer_key(convolution) + ", batch size " +
                                                  std::to_string(convolution.image[0]) + settings);
  return workspace.bytes;
}

// As cudnnBackendDescriptorType_t.
std::string types_of(const CudnnGraph& graph) {
  std::string text;
  for (const int operation : graph.operations) text += " " + std::to_string(operation);
  return text;
}

}  // namespace

std::uint64_t cudnn_workspace(const CudnnGraph& graph) {
  const auto products = std::count(graph.operations.begin(), graph.operations.end(), kMatmul);
  // Attention: with cuDNN 9.19 on an H200, 256 bytes, and where heads share keys and values, the gradients of these for
  // each head, in 16 bits, before they are summed.
  if (products >= 2) {
    if (!is_measured_cudnn()) count_estimate(Estimate::cudnn_workspace, "attention");
    return 256 + graph.summed_elements * sizeof(std::uint16_t);
  }
  // Only convolutions by themselves were measured.
  if (!graph.convolution || graph.operations.size() != 1)
    count_estimate(Estimate::cudnn_workspace, "a graph of operations" + types_of(graph));
  return graph.convolution ? workspace_of(*graph.convolution) : 0;
}

}  // namespace tidemark::phantom
