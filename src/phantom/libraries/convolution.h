// A convolution as described to cuDNN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::phantom {

enum class Pass : std::uint8_t { forward, backward_data, backward_filter };

/// `image` is the input of the forward pass, or its gradient; sizes of `filter` and all members after it are for height
/// and width, or for depth, height and width.
struct Convolution {
  Pass pass = Pass::forward;
  int type = 0;                      ///< cudnnDataType_t of the image
  bool channels_last = false;        ///< in memory
  std::vector<std::int64_t> image;   ///< batch, channels, sizes
  std::vector<std::int64_t> filter;  ///< outputs, channels of a group, sizes
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> paddings;
  std::vector<std::int64_t> dilations;

  [[nodiscard]] std::int64_t groups() const { return image[1] / filter[1]; }
};

/// Whether the sizes are consistent, as all other functions require.
[[nodiscard]] bool is_valid(const Convolution& convolution);

/// All properties that determine the workspace, except pass and batch size: data type (its name in CUDNN_DATA_),
/// layout, channels, height and width, outputs, then the filter's height and width, strides, paddings, dilations, and
/// the number of groups. Example: `float nchw 3 224 224 64 7 7 2 2 3 3 1 1 1`.
[[nodiscard]] std::string layer_key(const Convolution& convolution);

/// The cudnnDataType_t with this name in layer_key().
[[nodiscard]] int type_named(std::string_view name);

/// Bytes of one element of a cudnnDataType_t.
[[nodiscard]] std::uint64_t element_bytes(int type);

/// Bytes of input, output and filter together.
[[nodiscard]] std::uint64_t tensor_bytes(const Convolution& convolution);

}  // namespace tidemark::phantom
