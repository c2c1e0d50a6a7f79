// Sizes of the memory of cuDNN's recurrent networks.
#pragma once

#include <cstdint>

namespace tidemark::phantom {

/// cudnnRNNMode_t
enum class Cell : std::uint8_t { relu, tanh, lstm, gru };
/// cudnnRNNAlgo_t
enum class RecurrentAlgorithm : std::uint8_t { standard, persistent, dynamic, small };

struct RecurrentNetwork {
  Cell cell = Cell::relu;
  RecurrentAlgorithm algorithm = RecurrentAlgorithm::standard;
  int type = 0;  ///< cudnnDataType_t of inputs and weights
  bool bidirectional = false;
  bool dropout = false;       ///< between layers, even if there is only one
  bool padded = false;        ///< CUDNN_RNN_PADDED_IO_ENABLED
  std::uint64_t inputs = 0;   ///< features of one token
  std::uint64_t hidden = 0;   ///< features of a state of one direction
  std::uint64_t outputs = 0;  ///< features of an output of one direction; less than `hidden` with a projection
  std::uint64_t layers = 1;

  [[nodiscard]] std::uint64_t directions() const { return bidirectional ? 2 : 1; }
  /// Matrices of a layer and direction that multiply its inputs; as many multiply its previous outputs.
  [[nodiscard]] std::uint64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  [[nodiscard]] bool projection() const { return outputs != hidden; }
  /// Features of one token for a layer, counted from 0.
  [[nodiscard]] std::uint64_t inputs_of(std::uint64_t layer) const;
};

/// The sequences of a call.
struct SequenceBatch {
  std::uint64_t steps = 0;  ///< of the longest sequence
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;  ///< of all sequences; of padded ones, with the padding
};

/// A matrix or a bias in the weights. All are contiguous and without gaps: first the matrices of all layers (for each
/// layer, then for each direction, those of the inputs, those of the outputs, then the projection), then the biases.
struct WeightPlace {
  std::uint64_t offset = 0;  ///< elements
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
};

/// The matrix `matrix` of a layer and direction: `layer` * directions + direction. `matrix` counts those of the inputs,
/// those of the outputs, then the projection.
[[nodiscard]] WeightPlace matrix_of(const RecurrentNetwork& network, std::uint64_t layer, std::uint64_t matrix);
/// The bias that belongs to this matrix; there is none for a projection.
[[nodiscard]] WeightPlace bias_of(const RecurrentNetwork& network, std::uint64_t layer, std::uint64_t matrix);

/// Bytes.
[[nodiscard]] std::uint64_t weight_bytes(const RecurrentNetwork& network);
/// Bytes that a training's forward pass keeps for its backward passes.
[[nodiscard]] std::uint64_t reserve_bytes(const RecurrentNetwork& network, const SequenceBatch& batch);
/// Bytes of the workspace of inference, and of each pass of a training.
///
/// docs/phantom-gpu.md describes the measurements that these functions were made from.
[[nodiscard]] std::uint64_t inference_workspace(const RecurrentNetwork& network, const SequenceBatch& batch);
[[nodiscard]] std::uint64_t training_workspace(const RecurrentNetwork& network, const SequenceBatch& batch);

}  // namespace tidemark::phantom
