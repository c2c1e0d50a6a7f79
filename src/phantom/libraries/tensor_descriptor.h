// cuDNN's descriptor of a tensor.
#pragma once

#include <vector>

namespace tidemark::phantom {

struct TensorDescriptor {
  int type = 0;            ///< cudnnDataType_t
  std::vector<int> sizes;  ///< of images: batch, channels, and image sizes
};

}  // namespace tidemark::phantom
