// Activation checkpointing of the repeated layers.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// Activations of one layer, made in one forward pass.
struct LayerPass {
  std::vector<BlockId> blocks;                 ///< in order of birth
  std::uint64_t backward_at = Blocks::kAlive;  ///< when the first of them was freed
  std::uint64_t forward_end = 0;               ///< for a recomputed layer: end of its call in the forward pass
};

/// The output of a layer: of the blocks that its last operation made, the largest. Batch and layer normalization make
/// statistics after their output, and dropout a mask.
BlockId output_of(const Store& store, const std::vector<BlockId>& blocks) {
  const Blocks& all = store.blocks;
  const BlockId last = blocks.back();
  BlockId output = last;
  // Without numbers of autograd nodes, several operations of one line of code cannot be told apart.
  if (!all.stack[last.value].valid() || all.sequence.empty()) return output;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    const bool is_of_last =
        all.stack[block->value] == all.stack[last.value] && all.sequence[block->value] == all.sequence[last.value];
    if (!is_of_last) break;
    if (store.blocks.size[block->value] > store.blocks.size[output.value]) output = *block;
  }
  return output;
}

// Between a layer's forward and its backward, only its input is kept: the output of the layer before. In its backward
// all of its activations exist again, as without checkpointing. `phase`: phase of the layers' activations.
std::vector<EarlierFree> recompute_each_layer(const Subject& subject, Phase phase) {
  const Blocks& blocks = subject.store.blocks;
  std::map<std::string, std::size_t> numbers;
  std::vector<std::optional<std::size_t>> layers;  // by ModulePathId
  layers.reserve(subject.attribution.modules.size());
  for (const ModulePath& module : subject.attribution.modules) {
    const std::string layer = layer_of(module.path);
    layers.emplace_back();
    if (!layer.empty()) layers.back() = numbers.try_emplace(layer, numbers.size()).first->second;
  }
  std::map<std::pair<std::size_t, std::size_t>, LayerPass> passes;  // by layer and span
  std::size_t span = 0;
  std::vector<std::uint64_t> forward_ends(numbers.size());
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.attribution.blocks[block.value];
    const std::optional<std::size_t> layer = owner.module.valid() ? layers[owner.module.value] : std::nullopt;
    if (!layer) continue;
    if (owner.phase == Phase::forward) forward_ends[*layer] = std::uint64_t{blocks.birth_change[block.value]} + 1;
    if (owner.category != Category::activation || owner.phase != phase) continue;
    while (span < subject.spans.size() && subject.spans[span].to <= blocks.birth_change[block.value]) ++span;
    LayerPass& pass = passes[{*layer, span}];
    if (pass.blocks.empty() && phase == Phase::recomputation) pass.forward_end = forward_ends[*layer];
    pass.blocks.push_back(block);
    pass.backward_at = std::min<std::uint64_t>(pass.backward_at, blocks.death_change[block.value]);
  }
  std::vector<std::uint64_t> begins;
  for (const auto& [key, pass] : passes) begins.push_back(blocks.birth_change[pass.blocks.front().value]);
  std::ranges::sort(begins);
  std::vector<EarlierFree> frees;
  for (const auto& [key, pass] : passes) {
    const std::uint64_t end = std::uint64_t{blocks.birth_change[pass.blocks.back().value]} + 1;
    if (pass.backward_at <= end) continue;
    // A layer that is recomputed right before its backward pass has to be there.
    const auto next = std::ranges::lower_bound(begins, end);
    const bool others_follow = next != begins.end() && *next < pass.backward_at;
    if (phase == Phase::recomputation && !others_follow) continue;
    const BlockId output = output_of(subject.store, pass.blocks);
    for (const BlockId block : pass.blocks) {
      if (block != output) frees.push_back({block, end, pass.backward_at});
    }
    // The next layer's checkpoint would keep its input from the forward pass on.
    const std::uint64_t made = blocks.birth_change[output.value];
    if (pass.forward_end != 0) frees.push_back({output, pass.forward_end, made, {}, true});
  }
  return frees;
}

}  // namespace

bool is_place(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

std::string layer_of(const std::string& path) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (is_place(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

std::vector<EarlierFree> checkpoint_activations(const Subject& subject) {
  return recompute_each_layer(subject, Phase::forward);
}

// A checkpoint around several layers makes the activations of all of them before the backward pass of the last.
std::vector<EarlierFree> checkpoint_each_layer(const Subject& subject) {
  return recompute_each_layer(subject, Phase::recomputation);
}

}  // namespace tidemark::advice
