// Whether the process has the GPU and the libraries whose workspaces were measured: an H200, cuDNN 9.19, and
// cuSOLVER and cuFFT of CUDA 13.0. Elsewhere the same sizes are estimates.
#pragma once

namespace tidemark::phantom {

[[nodiscard]] bool is_measured_cudnn();
[[nodiscard]] bool is_measured_cuda_libraries();

}  // namespace tidemark::phantom
