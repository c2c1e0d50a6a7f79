// What a program set in torch.backends.cudnn, which decides the engines that cuDNN may choose from.
#pragma once

namespace tidemark::phantom {

/// As PyTorch starts with them.
struct CudnnSettings {
  bool deterministic = false;  ///< torch.backends.cudnn.deterministic or torch.use_deterministic_algorithms
  bool benchmark = false;
  bool tf32 = true;  ///< of convolutions
};

/// Asked of the PyTorch in this process; the values at the start where there is none. Thread-safe.
[[nodiscard]] CudnnSettings cudnn_settings();

}  // namespace tidemark::phantom
