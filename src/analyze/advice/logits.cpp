// Tensors of the logits' size: the output of the head, its copies in 32 bits, and intermediate results of the loss.
#include <algorithm>
#include <cstdint>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

/// The most bytes that the head allocates at once in a forward pass. If no module is known to be a head, code that
/// belongs to the head counts.
std::uint64_t logits_bytes(const Subject& subject) {
  std::uint64_t by_module = 0;
  std::uint64_t by_code = 0;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    if (owner.component != Component::head || owner.phase != Phase::forward) continue;
    const bool is_head =
        owner.module.valid() && subject.attribution.modules[owner.module.value].component == Component::head;
    std::uint64_t& most = is_head ? by_module : by_code;
    most = std::max(most, subject.store.blocks.size[block.value]);
  }
  return by_module != 0 ? by_module : by_code;
}

struct Logits {
  std::vector<EarlierFree> frees;
  bool upcast = false;  ///< whether the forward pass makes tensors of twice the size
};

// Outside the repeated layers, only logits, their copies and their gradients have their size, or twice that.
Logits find_logits(const Subject& subject) {
  const std::uint64_t size = logits_bytes(subject);
  Logits found;
  if (size == 0) return found;
  for (const BlockId block : subject.blocks) {
    const std::uint64_t bytes = subject.store.blocks.size[block.value];
    if (bytes != size && bytes != 2 * size) continue;
    const Owner& owner = subject.owner(block);
    const bool computed = owner.phase == Phase::forward || owner.phase == Phase::backward;
    const bool of_the_model = owner.category == Category::parameter || owner.category == Category::gradient ||
                              owner.category == Category::buffer || owner.category == Category::optimizer_state;
    const bool in_layer =
        owner.module.valid() && !layer_of(subject.attribution.modules[owner.module.value].path).empty();
    if (!computed || of_the_model || in_layer) continue;
    found.frees.push_back(never_there(subject.store, block));
    found.upcast |= owner.phase == Phase::forward && bytes == 2 * size;
  }
  return found;
}

}  // namespace

std::vector<EarlierFree> logits(const Subject& subject) {
  Logits found = find_logits(subject);
  return found.upcast ? std::vector<EarlierFree>() : std::move(found.frees);
}

std::vector<EarlierFree> logits_upcast(const Subject& subject) {
  Logits found = find_logits(subject);
  return found.upcast ? std::move(found.frees) : std::vector<EarlierFree>();
}

}  // namespace tidemark::advice
