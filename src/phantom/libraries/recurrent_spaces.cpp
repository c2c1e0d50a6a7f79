#include "phantom/libraries/recurrent_spaces.h"

#include <algorithm>
#include <vector>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {

namespace {

constexpr std::uint64_t kBuffer = 32;               // buffers are whole multiples
constexpr std::uint64_t kHead = 256;                // of each space
constexpr std::uint64_t kStreamBytes = 8ULL << 20;  // for each layer and direction
constexpr std::uint64_t kLongest = 256;             // steps whose products one buffer holds, with one direction

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

// Elements of the matrices of a layer and direction.
std::uint64_t matrix_elements(const RecurrentNetwork& network, std::uint64_t layer) {
  const std::uint64_t products = network.gates() * network.hidden * (network.inputs_of(layer) + network.outputs);
  return products + (network.projection() ? network.outputs * network.hidden : 0);
}

std::uint64_t matrix_elements(const RecurrentNetwork& network) {
  std::uint64_t elements = 0;
  for (std::uint64_t layer = 0; layer < network.layers; ++layer)
    elements += network.directions() * matrix_elements(network, layer);
  return elements;
}

using Multiples = std::vector<std::uint64_t>;

// Adds up buffers.
class Buffers {
 public:
  explicit Buffers(const RecurrentNetwork& network) : element_bytes_(element_bytes(network.type)) {}

  /// A buffer of so many times `elements` for each of `multiples`.
  void add(std::uint64_t elements, const Multiples& multiples = {1}) {
    for (const std::uint64_t multiple : multiples) bytes_ += round_up(multiple * elements * element_bytes_, kBuffer);
  }
  /// Several buffers of the same size.
  void add_each(std::uint64_t buffers, std::uint64_t elements) {
    bytes_ += buffers * round_up(elements * element_bytes_, kBuffer);
  }
  void add_bytes(std::uint64_t bytes) { bytes_ += round_up(bytes, kBuffer); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t element_bytes_;
  std::uint64_t bytes_ = 0;
};

// Elements for the whole batch.
struct Elements {
  std::uint64_t hidden;         // states of one direction of a layer, of all tokens
  std::uint64_t inputs;         // of all tokens
  std::uint64_t outputs;        // of all tokens and directions
  std::uint64_t states;         // of one token of each sequence, in all layers of one direction
  std::uint64_t output_states;  // the same with the size of outputs
};

Elements elements_of(const RecurrentNetwork& network, const SequenceBatch& batch) {
  return {.hidden = batch.tokens * network.hidden,
          .inputs = batch.tokens * network.inputs,
          .outputs = batch.tokens * network.outputs * network.directions(),
          .states = network.layers * batch.sequences * network.hidden,
          .output_states = network.layers * batch.sequences * network.outputs};
}

// Whether the weights stay on the multiprocessors. In bfloat16 cuDNN takes the standard sizes.
bool is_persistent(const RecurrentNetwork& network) {
  return network.algorithm != RecurrentAlgorithm::standard && network.type != type_named("bfloat16");
}

// Tokens in the first steps: at most this many.
std::uint64_t first_tokens(const SequenceBatch& batch, std::uint64_t steps) {
  return std::min(steps * batch.sequences, batch.tokens);
}

// Steps whose outputs a layer keeps for the next one, which follows some steps behind.
std::uint64_t steps_between_layers(const RecurrentNetwork& network, const SequenceBatch& batch) {
  struct Block {
    std::uint64_t sequences;  // at most
    std::uint64_t steps;
  };
  constexpr Block kBlocks[] = {{1, 32}, {8, 16}, {16, 8}, {96, 4}};
  constexpr std::uint64_t kFewest = 2;
  constexpr std::uint64_t kManySteps = 128;
  constexpr std::uint64_t kOfManySteps = 8;
  std::uint64_t block = kFewest;
  for (const Block& other : kBlocks) {
    if (batch.sequences > other.sequences) continue;
    block = other.steps;
    break;
  }
  if (batch.steps >= kManySteps) block = std::max(block, kOfManySteps);
  return network.layers * block + std::max(block, kOfManySteps);
}

// What both workspaces contain.
Buffers common_buffers(const RecurrentNetwork& network, const SequenceBatch& batch) {
  Buffers buffers(network);
  buffers.add_bytes(kStreamBytes * network.layers * network.directions() + kHead);
  buffers.add(matrix_elements(network));
  if (network.padded) buffers.add_bytes(8 * batch.sequences);
  return buffers;
}

// Copies without padding: of outputs, inputs, and states.
void add_unpadded(Buffers& buffers, const RecurrentNetwork& network, const Elements& elements, std::uint64_t copies) {
  if (!network.padded) return;
  buffers.add_each(copies, elements.outputs);
  buffers.add_each(copies, elements.inputs);
  buffers.add_each(2 * copies, network.directions() * elements.output_states);
  if (network.cell == Cell::lstm) buffers.add_each(2 * copies, network.directions() * elements.states);
}

// The buffers of states: how many times those of one direction each has.
Multiples forward_states(const RecurrentNetwork& network) {
  const bool lstm = network.cell == Cell::lstm;
  if (is_persistent(network)) {
    if (network.bidirectional) return lstm ? Multiples{4, 4, 2} : Multiples{4, 2};
    return lstm ? Multiples{2, 2} : Multiples{2};
  }
  if (!network.bidirectional) return lstm ? Multiples{4, 2} : Multiples{network.gates()};
  if (lstm) return {8, 4, 4};
  return network.cell == Cell::gru ? Multiples{6, 4} : Multiples{4, 2};
}
Multiples backward_states(const RecurrentNetwork& network) {
  const bool lstm = network.cell == Cell::lstm;
  if (network.bidirectional) return lstm ? Multiples{4, 4, 2} : Multiples{4, 2};
  if (is_persistent(network)) return lstm ? Multiples{2, 2} : Multiples{2};
  return lstm ? Multiples{2, 1} : Multiples{1};
}

// What computes the outputs from the inputs.
std::uint64_t forward_workspace(const RecurrentNetwork& network, const SequenceBatch& batch) {
  const Elements elements = elements_of(network, batch);
  const std::uint64_t gates = network.gates();
  Buffers buffers = common_buffers(network, batch);
  add_unpadded(buffers, network, elements, 1);
  if (is_persistent(network)) {
    buffers.add(elements.hidden, {4 * gates, network.directions() * gates});
    if (network.bidirectional)
      buffers.add(elements.hidden, {4});
    else if (network.dropout)
      buffers.add(elements.hidden);
  } else if (network.bidirectional) {
    buffers.add(elements.hidden, {4, 2 * gates});
  } else {
    buffers.add(first_tokens(batch, kLongest) * network.hidden, {gates});
    if (network.dropout) buffers.add(elements.hidden);
  }
  if (network.projection()) buffers.add(network.directions() * elements.hidden);
  buffers.add(elements.states, forward_states(network));
  return buffers.bytes();
}

// What computes gradients.
std::uint64_t backward_workspace(const RecurrentNetwork& network, const SequenceBatch& batch) {
  const Elements elements = elements_of(network, batch);
  const bool lstm = network.cell == Cell::lstm;
  const bool one_layer = network.layers == 1;
  Buffers buffers = common_buffers(network, batch);
  add_unpadded(buffers, network, elements, 2);
  if (is_persistent(network)) buffers.add(elements.hidden, {8, lstm ? 4U : network.cell == Cell::gru ? 6U : 1U});
  if (network.projection()) buffers.add(network.directions() * elements.hidden);
  const std::uint64_t widest = std::max(elements.inputs, elements.hidden);
  if (network.bidirectional || is_persistent(network)) {
    buffers.add(network.directions() * elements.hidden, {one_layer ? 1U : 2U});
    buffers.add(widest, {network.bidirectional ? 4U : 1U});
  } else {
    const std::uint64_t steps = one_layer ? batch.steps : steps_between_layers(network, batch);
    buffers.add(first_tokens(batch, std::min(steps, batch.steps)) * network.hidden);
    buffers.add(widest);
  }
  buffers.add(elements.states, backward_states(network));
  return buffers.bytes();
}

}  // namespace

std::uint64_t RecurrentNetwork::inputs_of(std::uint64_t layer) const {
  return layer == 0 ? inputs : outputs * directions();
}

WeightPlace matrix_of(const RecurrentNetwork& network, std::uint64_t layer, std::uint64_t matrix) {
  const std::uint64_t real_layer = layer / network.directions();
  WeightPlace place;
  for (std::uint64_t before = 0; before < real_layer; ++before)
    place.offset += network.directions() * matrix_elements(network, before);
  place.offset += layer % network.directions() * matrix_elements(network, real_layer);
  const std::uint64_t gates = network.gates();
  const std::uint64_t of_inputs = network.hidden * network.inputs_of(real_layer);
  const std::uint64_t of_outputs = network.hidden * network.outputs;
  place.offset += std::min(matrix, gates) * of_inputs;
  if (matrix > gates) place.offset += (matrix - gates) * of_outputs;
  if (matrix == 2 * gates) return {place.offset, network.outputs, network.hidden};
  return {place.offset, network.hidden, matrix < gates ? network.inputs_of(real_layer) : network.outputs};
}

WeightPlace bias_of(const RecurrentNetwork& network, std::uint64_t layer, std::uint64_t matrix) {
  const std::uint64_t biases = layer * 2 * network.gates() + matrix;
  return {matrix_elements(network) + biases * network.hidden, network.hidden, 1};
}

std::uint64_t weight_bytes(const RecurrentNetwork& network) {
  const std::uint64_t biases = network.layers * network.directions() * 2 * network.gates() * network.hidden;
  return (matrix_elements(network) + biases) * element_bytes(network.type);
}

std::uint64_t reserve_bytes(const RecurrentNetwork& network, const SequenceBatch& batch) {
  const std::uint64_t directions = network.directions();
  const Elements elements = elements_of(network, batch);
  const std::uint64_t states = elements.hidden * directions * network.layers;
  Buffers buffers(network);
  buffers.add_bytes(kHead);
  if (network.cell == Cell::lstm) {
    buffers.add(states, {4, 1});
    if (network.projection()) {
      buffers.add(states);
      buffers.add(elements.outputs * network.layers);
    }
  } else {
    buffers.add(states, {network.cell == Cell::gru ? 6U : 1U});
  }
  if (network.layers == 1) return buffers.bytes();
  buffers.add((network.layers - 1) * elements.hidden * directions);
  if (!network.dropout) return buffers.bytes();
  // A bit for each element that may be dropped, also of the padding.
  const std::uint64_t bits = batch.steps * batch.sequences * network.outputs * directions;
  for (std::uint64_t mask = 0; mask < (network.layers - 1) * directions; ++mask) buffers.add_bytes((bits + 7) / 8);
  return buffers.bytes();
}

std::uint64_t inference_workspace(const RecurrentNetwork& network, const SequenceBatch& batch) {
  return forward_workspace(network, batch);
}

std::uint64_t training_workspace(const RecurrentNetwork& network, const SequenceBatch& batch) {
  return std::max(forward_workspace(network, batch), backward_workspace(network, batch));
}

}  // namespace tidemark::phantom
