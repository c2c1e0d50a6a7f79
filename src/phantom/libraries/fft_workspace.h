// The workspaces that cuFFT's plans take, as far as they were measured.
#pragma once

#include <cstdint>

namespace tidemark::phantom {

/// One plan: `batch` transforms of `rank` lengths each.
struct FftPlan {
  const long long* lengths = nullptr;
  int rank = 1;
  std::int64_t batch = 1;
  std::int64_t element_bytes = 8;  ///< of a complex number
  bool real = false;               ///< one side is real numbers
  bool strided = false;            ///< the elements of a transform are not neighbours
};

struct FftWorkspace {
  std::int64_t bytes = 0;
  bool measured = false;  ///< where all plans that were measured are equal; otherwise an estimate
};

/// With the cuFFT of CUDA 13.0 on an H200 (scripts/measure_workspaces.py); docs/phantom-gpu.md has what was held out.
[[nodiscard]] FftWorkspace fft_workspace(const FftPlan& plan);

}  // namespace tidemark::phantom
