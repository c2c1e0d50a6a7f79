// Workspaces of cuDNN's convolutions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {

struct MeasuredLayer {
  Convolution shape;                                                ///< its batch size is 0
  std::map<std::int64_t, std::array<std::uint64_t, 3>> workspaces;  ///< bytes by batch size and Pass
};

/// By layer_key(). Read at the first call; thread-safe.
[[nodiscard]] const std::map<std::string, MeasuredLayer>& measured_layers();

struct ConvolutionWorkspace {
  std::uint64_t bytes = 0;
  bool measured = false;  ///< this convolution was measured; otherwise `bytes` is an estimate
};

/// The workspace with cuDNN 9.19 on a GPU of compute capability 9.0, where convolutions were measured. Thread-safe.
///
/// Other convolutions are estimated: from the three nearest measured convolutions of the same pass (by the sum of the
/// logarithms by which batch, channels, outputs, height and width differ, plus eight times that sum for the other
/// numbers), the median of workspace / tensor_bytes(), times the convolution's own tensor_bytes(). Accuracy for each of
/// the 4199 measured ones, left out of the table alone, then together with all batch sizes of its layer:
///
///   pass              within 1% of the tensors' bytes    within 10%    mean error    sum of all estimates
///   forward           88%, 83%                           92%, 88%      5%, 10%       -0.4%, -4.3%
///   backward data     90%, 86%                           93%, 89%      5%, 9%        -0.6%, +3.4%
///   backward filter   59%, 52%                           85%, 79%      13%, 29%      -0.8%, +1.3%
[[nodiscard]] ConvolutionWorkspace convolution_workspace(const Convolution& convolution);

}  // namespace tidemark::phantom
