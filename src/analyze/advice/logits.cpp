// Tensors as large as the logits: the output of the head, its copies in 32 bits, and what the loss makes of them.
#include <algorithm>
#include <cstdint>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// The most bytes that the head makes at once in a forward pass.
std::uint64_t logits_bytes(const Subject& subject) {
  std::uint64_t most = 0;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.attribution.blocks[block.value];
    if (owner.component != Component::head || owner.phase != Phase::forward) continue;
    most = std::max(most, subject.store.blocks.size[block.value]);
  }
  return most;
}

}  // namespace

// Outside the repeated layers nothing else than logits, their copies and their gradients has their size, or twice that.
std::vector<EarlierFree> logits(const Subject& subject) {
  const std::uint64_t size = logits_bytes(subject);
  std::vector<EarlierFree> frees;
  if (size == 0) return frees;
  for (const BlockId block : subject.blocks) {
    const std::uint64_t bytes = subject.store.blocks.size[block.value];
    if (bytes != size && bytes != 2 * size) continue;
    const Owner& owner = subject.attribution.blocks[block.value];
    const bool computed = owner.phase == Phase::forward || owner.phase == Phase::backward;
    const bool of_the_model = owner.category == Category::parameter || owner.category == Category::gradient ||
                              owner.category == Category::buffer || owner.category == Category::optimizer_state;
    const bool in_layer =
        owner.module.valid() && !layer_of(subject.attribution.modules[owner.module.value].path).empty();
    if (computed && !of_the_model && !in_layer) frees.push_back(never_there(subject.store, block));
  }
  return frees;
}

}  // namespace tidemark::advice
