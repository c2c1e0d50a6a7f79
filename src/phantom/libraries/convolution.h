// A convolution as cuDNN sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::phantom {

enum class Pass : std::uint8_t { forward, backward_data, backward_filter };

struct Convolution {
  Pass pass = Pass::forward;
  int type = 0;                        ///< cudnnDataType_t of the image: input, or its gradient
  std::vector<std::int64_t> image;     ///< batch, channels, then height and width (or depth, height and width)
  std::vector<std::int64_t> strides;   ///< of the image, in elements
  std::vector<std::int64_t> filter;    ///< outputs, channels of a group, then height and width
  std::vector<std::int64_t> steps;     ///< the convolution's strides
  std::vector<std::int64_t> paddings;  ///< before the image
  std::vector<std::int64_t> dilations;

  [[nodiscard]] bool channels_last() const {
    return image.size() > 2 && strides.size() == image.size() && strides[1] == 1 && strides.back() == image[1];
  }
};

/// What decides the workspace but for pass and batch size: data type (its name in CUDNN_DATA_), layout, channels,
/// height and width, outputs, then the filter's height and width, strides, paddings, dilations, and the number of
/// groups. Example: `float nchw 3 224 224 64 7 7 2 2 3 3 1 1 1`.
[[nodiscard]] std::string layer_key(const Convolution& convolution);

}  // namespace tidemark::phantom
