// What the implementations of cuDNN share: the descriptor of a tensor, and a status.
#pragma once

#include <vector>

namespace tidemark::phantom {

struct TensorDescriptor {
  int type = 0;            ///< cudnnDataType_t
  std::vector<int> sizes;  ///< of images: batch, channels, and image sizes
};

inline constexpr int kCudnnBadParameter = 2000;  // CUDNN_STATUS_BAD_PARAM

}  // namespace tidemark::phantom
