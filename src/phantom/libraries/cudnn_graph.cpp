#include "phantom/libraries/cudnn_graph.h"

#include <algorithm>

namespace tidemark::phantom {
namespace {

constexpr int kMatmul = 19;  // CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR

}  // namespace

std::uint64_t cudnn_workspace(const CudnnGraph& graph) {
  const auto products = std::count(graph.operations.begin(), graph.operations.end(), kMatmul);
  if (products >= 2) return 16;
  return 0;
}

}  // namespace tidemark::phantom
