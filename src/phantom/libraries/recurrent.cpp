// cuDNN's recurrent networks: descriptors, the places of weights, and the sizes that PyTorch allocates.
#include <cstddef>
#include <cstdint>
#include <string>

#include "phantom/gpu/abi.h"
#include "phantom/gpu/profile.h"
#include "phantom/gpu/usage.h"
#include "phantom/libraries/convolution.h"
#include "phantom/libraries/recurrent_spaces.h"
#include "phantom/libraries/tensor_descriptor.h"

namespace tidemark::phantom {

namespace {

struct DropoutDescriptor {
  float probability = 0;
};

struct RecurrentDescriptor {
  RecurrentNetwork network;
  bool measured = false;  ///< with the biases and inputs that PyTorch uses
};

constexpr int kDoubleBias = 2;                // CUDNN_RNN_DOUBLE_BIAS
constexpr int kLinearInput = 0;               // CUDNN_LINEAR_INPUT
constexpr unsigned kPadded = 1;               // CUDNN_RNN_PADDED_IO_ENABLED
constexpr int kTraining = 1;                  // CUDNN_FWD_MODE_TRAINING
constexpr std::size_t kDropoutBytes = 49152;  // states for each multiprocessor

std::string description(const RecurrentNetwork& network) {
  constexpr const char* kNames[] = {"nn.RNN", "nn.RNN", "nn.LSTM", "nn.GRU"};
  return std::string(kNames[static_cast<int>(network.cell)]) + "(" + std::to_string(network.inputs) + ", " +
         std::to_string(network.hidden) + ", " + std::to_string(network.layers) + ")";
}

// Of networks whose weights stay on the multiprocessors, short batches take up to some MiB more by an unknown rule.
bool is_measured(const RecurrentNetwork& network, const SequenceBatch& batch, bool training) {
  constexpr std::uint64_t kShortest = 256;
  if (network.algorithm == RecurrentAlgorithm::persistent) return training && batch.tokens > kShortest;
  return network.algorithm != RecurrentAlgorithm::dynamic;
}

// Places of a matrix or a bias, as cuDNN describes them.
void describe(const RecurrentNetwork& network, const WeightPlace& place, TensorDescriptor* descriptor) {
  descriptor->type = network.type;
  descriptor->sizes = {1, static_cast<int>(place.rows), static_cast<int>(place.columns)};
}

}  // namespace

TIDEMARK_PHANTOM_API int cudnnCreateDropoutDescriptor(DropoutDescriptor** descriptor) {
  *descriptor = new DropoutDescriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnDestroyDropoutDescriptor(DropoutDescriptor* descriptor) {
  delete descriptor;
  return 0;
}
// Measured on an H200.
TIDEMARK_PHANTOM_API int cudnnDropoutGetStatesSize(Handle, std::size_t* bytes) {
  if (!is_measured_cudnn()) count_estimate(Estimate::cudnn_workspace, "states of dropout");
  *bytes = kDropoutBytes * static_cast<std::size_t>(profile().multiprocessors);
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetDropoutDescriptor(DropoutDescriptor* descriptor, Handle, float probability, void*,
                                                   std::size_t, unsigned long long) {
  descriptor->probability = probability;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnRestoreDropoutDescriptor(DropoutDescriptor* descriptor, Handle, float probability, void*,
                                                       std::size_t, unsigned long long) {
  descriptor->probability = probability;
  return 0;
}

TIDEMARK_PHANTOM_API int cudnnCreateRNNDescriptor(RecurrentDescriptor** descriptor) {
  *descriptor = new RecurrentDescriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnDestroyRNNDescriptor(RecurrentDescriptor* descriptor) {
  delete descriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetRNNDescriptor_v8(RecurrentDescriptor* descriptor, int algorithm, int cell, int biases,
                                                  int directions, int inputs, int type, int, int, std::int32_t input,
                                                  std::int32_t hidden, std::int32_t output, std::int32_t layers,
                                                  const DropoutDescriptor* dropout, std::uint32_t flags) {
  if (cell < 0 || cell > 3 || algorithm < 0 || algorithm > 3) return kCudnnBadParameter;
  if (input < 1 || hidden < 1 || output < 1 || output > hidden || layers < 1) return kCudnnBadParameter;
  descriptor->network = {.cell = static_cast<Cell>(cell),
                         .algorithm = static_cast<RecurrentAlgorithm>(algorithm),
                         .type = type,
                         .bidirectional = directions == 1,
                         .dropout = dropout != nullptr && dropout->probability > 0,
                         .padded = (flags & kPadded) != 0,
                         .inputs = static_cast<std::uint64_t>(input),
                         .hidden = static_cast<std::uint64_t>(hidden),
                         .outputs = static_cast<std::uint64_t>(output),
                         .layers = static_cast<std::uint64_t>(layers)};
  descriptor->measured = biases == kDoubleBias && inputs == kLinearInput;
  return 0;
}

TIDEMARK_PHANTOM_API int cudnnCreateRNNDataDescriptor(SequenceBatch** descriptor) {
  *descriptor = new SequenceBatch;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnDestroyRNNDataDescriptor(SequenceBatch* descriptor) {
  delete descriptor;
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnSetRNNDataDescriptor(SequenceBatch* descriptor, int, int layout, int steps, int sequences,
                                                   int, const int* lengths, void*) {
  constexpr int kPacked = 1;  // CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
  if (steps < 1 || sequences < 1) return kCudnnBadParameter;
  descriptor->steps = static_cast<std::uint64_t>(steps);
  descriptor->sequences = static_cast<std::uint64_t>(sequences);
  descriptor->tokens = descriptor->steps * descriptor->sequences;
  if (layout != kPacked || lengths == nullptr) return 0;
  descriptor->tokens = 0;
  for (int sequence = 0; sequence < sequences; ++sequence)
    descriptor->tokens += static_cast<std::uint64_t>(lengths[sequence]);
  return 0;
}

TIDEMARK_PHANTOM_API int cudnnGetRNNWeightSpaceSize(Handle, const RecurrentDescriptor* descriptor, std::size_t* bytes) {
  *bytes = weight_bytes(descriptor->network);
  return 0;
}
TIDEMARK_PHANTOM_API int cudnnGetRNNWeightParams(Handle, const RecurrentDescriptor* descriptor, std::int32_t layer,
                                                 std::size_t, const void* weights, std::int32_t matrix,
                                                 TensorDescriptor* matrix_descriptor, const void** matrix_address,
                                                 TensorDescriptor* bias_descriptor, const void** bias_address) {
  const RecurrentNetwork& network = descriptor->network;
  const auto matrices = static_cast<std::int32_t>(2 * network.gates());
  if (layer < 0 || static_cast<std::uint64_t>(layer) >= network.layers * network.directions())
    return kCudnnBadParameter;
  if (matrix < 0 || matrix > matrices || (matrix == matrices && !network.projection())) return kCudnnBadParameter;
  const auto wanted_layer = static_cast<std::uint64_t>(layer);
  const auto wanted = static_cast<std::uint64_t>(matrix);
  const auto* const start = static_cast<const char*>(weights);
  if (matrix_descriptor != nullptr && matrix_address != nullptr) {
    const WeightPlace place = matrix_of(network, wanted_layer, wanted);
    describe(network, place, matrix_descriptor);
    *matrix_address = start + place.offset * element_bytes(network.type);
  }
  if (bias_descriptor == nullptr || bias_address == nullptr) return 0;
  *bias_address = nullptr;
  if (matrix == matrices) return 0;
  const WeightPlace place = bias_of(network, wanted_layer, wanted);
  describe(network, place, bias_descriptor);
  *bias_address = start + place.offset * element_bytes(network.type);
  return 0;
}

TIDEMARK_PHANTOM_API int cudnnGetRNNTempSpaceSizes(Handle, const RecurrentDescriptor* descriptor, int mode,
                                                   const SequenceBatch* batch, std::size_t* workspace,
                                                   std::size_t* reserve) {
  const RecurrentNetwork& network = descriptor->network;
  const bool training = mode == kTraining;
  if (!descriptor->measured || !is_measured(network, *batch, training) || !is_measured_cudnn())
    count_estimate(Estimate::cudnn_workspace,
                   description(network) + ", batch size " + std::to_string(batch->sequences));
  if (workspace != nullptr)
    *workspace = training ? training_workspace(network, *batch) : inference_workspace(network, *batch);
  if (reserve != nullptr) *reserve = training ? reserve_bytes(network, *batch) : 0;
  return 0;
}

}  // namespace tidemark::phantom
