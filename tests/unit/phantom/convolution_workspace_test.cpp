// The workspaces of convolutions. Expected bytes were allocated by PyTorch 2.11 on an H200.
#include "phantom/libraries/convolution_workspace.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tidemark::phantom {
namespace {

constexpr int kFloat = 0;
constexpr int kHalf = 2;
constexpr int kBfloat16 = 9;

Convolution square(int type, std::int64_t batch, std::int64_t channels, std::int64_t size, std::int64_t outputs,
                   std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {.pass = Pass::forward,
          .type = type,
          .channels_last = false,
          .image = {batch, channels, size, size},
          .filter = {outputs, channels, kernel, kernel},
          .strides = {stride, stride},
          .paddings = {padding, padding},
          .dilations = {1, 1}};
}

using Bytes = std::array<std::uint64_t, 3>;

Bytes bytes(Convolution convolution, bool measured = true) {
  Bytes all = {};
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_filter}) {
    convolution.pass = pass;
    const ConvolutionWorkspace workspace = convolution_workspace(convolution);
    EXPECT_EQ(workspace.measured, measured);
    all[static_cast<std::size_t>(pass)] = workspace.bytes;
  }
  return all;
}

TEST(ConvolutionWorkspace, AsMeasured) {
  EXPECT_EQ(bytes(square(kFloat, 8, 3, 224, 64, 7, 2, 3)), (Bytes{30544656, 0, 34872464}));
  EXPECT_EQ(bytes(square(kFloat, 8, 64, 56, 64, 3, 1, 1)), (Bytes{6570000, 12992528, 15057575}));
  EXPECT_EQ(bytes(square(kBfloat16, 8, 64, 224, 64, 3, 1, 1)), (Bytes{102834323, 102834323, 104751783}));
  EXPECT_EQ(bytes(square(kFloat, 8, 64, 56, 64, 1, 1, 0)), (Bytes{400, 0, 131072}));
}

TEST(ConvolutionWorkspace, DependsOnTheLayout) {
  Convolution convolution = square(kBfloat16, 8, 64, 224, 64, 3, 1, 1);
  convolution.channels_last = true;
  EXPECT_EQ(bytes(convolution), (Bytes{131, 131, 1917591}));
}

TEST(ConvolutionWorkspace, OfAnotherBatchSizeIsScaledByTheTensors) {
  // Nearest are the batch sizes 48, 32 and 64. In the forward pass they took 77,217,939, 25,837,584 and 102,908,051
  // bytes, with 77,217,792, 51,527,680 and 102,907,904 bytes of input, output and filter: the last ratio is between the
  // others. Batch size 40 has tensors of 64,372,736 bytes.
  const Bytes estimated = bytes(square(kFloat, 40, 64, 56, 64, 3, 1, 1), false);
  EXPECT_EQ(estimated[0], 64372736ULL * 102908051 / 102907904);
}

TEST(ConvolutionWorkspace, OfHalfIsThatOfBfloat16) {
  // If half was measured itself, it is the same: one byte for each byte of the tensors.
  const Bytes estimated = bytes(square(kHalf, 4, 64, 224, 64, 3, 1, 1), false);
  EXPECT_NEAR(static_cast<double>(estimated[0]), 51454099, 200);  // as bfloat16
}

TEST(ConvolutionWorkspace, OfThreeDimensionsIsEstimated) {
  const Convolution convolution{.pass = Pass::forward,
                                .type = kFloat,
                                .channels_last = false,
                                .image = {2, 3, 16, 112, 112},
                                .filter = {64, 3, 3, 7, 7},
                                .strides = {1, 2, 2},
                                .paddings = {1, 3, 3},
                                .dilations = {1, 1, 1}};
  EXPECT_EQ(tensor_bytes(convolution), 4ULL * (2 * 3 * 16 * 112 * 112 + 2 * 64 * 16 * 56 * 56 + 64 * 3 * 3 * 7 * 7));
  EXPECT_FALSE(convolution_workspace(convolution).measured);
}

TEST(Convolution, KeyContainsRelevantProperties) {
  Convolution convolution = square(kFloat, 8, 64, 56, 128, 3, 2, 1);
  EXPECT_EQ(layer_key(convolution), "float nchw 64 56 56 128 3 3 2 2 1 1 1 1 1");
  convolution.filter[1] = 4;
  convolution.channels_last = true;
  convolution.image = {8, 64, 56, 28};
  EXPECT_EQ(layer_key(convolution), "float nhwc 64 56 28 128 3 3 2 2 1 1 1 1 16");
}

TEST(Convolution, SizesHaveToFit) {
  EXPECT_TRUE(is_valid(square(kFloat, 8, 64, 56, 128, 3, 2, 1)));
  EXPECT_FALSE(is_valid({}));
  Convolution convolution = square(kFloat, 8, 64, 56, 128, 3, 2, 1);
  convolution.strides = {1};
  EXPECT_FALSE(is_valid(convolution));
}

TEST(MeasuredLayers, AreAllRead) {
  std::size_t convolutions = 0;
  for (const auto& [key, layer] : measured_layers()) {
    EXPECT_EQ(layer_key(layer.shape), key);
    convolutions += layer.workspaces.size();
  }
  EXPECT_EQ(measured_layers().size(), 3704);
  EXPECT_EQ(convolutions, 25316);
}

}  // namespace
}  // namespace tidemark::phantom
