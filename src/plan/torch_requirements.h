// Versions of NVIDIA's libraries that an installed PyTorch was built for.
#pragma once

#include "launch/interpreter_probe.h"

namespace tidemark {

/// As the libraries number themselves: CUDA 13.0 is 13000, cuDNN 9.19.0 is 91900, NCCL 2.28.9 is 22809, cuBLAS 12.8.4
/// is 120804.
struct TorchRequirements {
  int cuda = 0;
  int cublas = 0;
  int cudnn = 0;
  int nccl = 0;
};

/// Read from what the package says that it requires; for what it does not say, what was current with its version of
/// CUDA.
[[nodiscard]] TorchRequirements torch_requirements(const InterpreterFacts& python);

}  // namespace tidemark
