// Tensors of the logits' size: the output of the head, its copies in 32 bits, and intermediate results of the loss.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

bool is_in_head(const Subject& subject, const Owner& owner) {
  return owner.module.valid() && subject.attribution.modules[owner.module.value].component == Component::head;
}

struct Head {
  std::uint64_t bytes = 0;  ///< the most that it allocates at once in a forward pass
  bool by_module = false;   ///< a module is known to be a head; otherwise code is, such as that of the loss
};

Head find_head(const Subject& subject) {
  std::uint64_t by_module = 0;
  std::uint64_t by_code = 0;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    if (owner.component != Component::head || owner.phase != Phase::forward) continue;
    std::uint64_t& most = is_in_head(subject, owner) ? by_module : by_code;
    most = std::max(most, subject.store.blocks.size[block.value]);
  }
  return by_module != 0 ? Head{by_module, true} : Head{by_code, false};
}

/// Whether a block of the logits' size is the logits themselves: a result of the head or, if no module is known to be
/// one, of any module.
bool is_output_of_head(const Subject& subject, BlockId block, bool by_module) {
  const Owner& owner = subject.owner(block);
  if (owner.phase != Phase::forward) return false;
  return by_module ? is_in_head(subject, owner) : owner.module.valid() && owner.component != Component::head;
}

struct Logits {
  std::vector<EarlierFree> frees;
  bool upcast = false;  ///< whether the forward pass makes tensors of twice the size
};

/// Whether a request has about a tensor's size: a block may be larger by what the allocator leaves unsplit.
bool is_about(std::uint64_t requested, std::uint64_t bytes) {
  constexpr std::uint64_t kUnsplit = std::uint64_t{4} << 20;
  return requested <= bytes && bytes - requested <= kUnsplit;
}

/// Whether a request of the logits' size, or twice that, failed after `block` was allocated and before `next` was.
bool fails_before(const Subject& subject, BlockId block, std::optional<BlockId> next, std::uint64_t size) {
  const auto& births = subject.store.blocks.birth_change;
  return std::ranges::any_of(subject.store.out_of_memory, [&](const OutOfMemory& failure) {
    return failure.device == subject.device &&
           (is_about(failure.requested, size) || is_about(failure.requested, 2 * size)) &&
           failure.change_count > births[block.value] && (!next || failure.change_count <= births[next->value]);
  });
}

// A loss allocates tensors of the logits' size after an output of the head and before the next one. Outputs without
// that, such as those that an evaluation collects, are not the input of a loss.
void remove_outputs_without_loss(const Subject& subject, std::vector<EarlierFree>& frees, Head head) {
  std::vector<EarlierFree> kept;
  for (std::size_t index = 0; index < frees.size(); ++index) {
    const BlockId block = frees[index].block;
    if (is_output_of_head(subject, block, head.by_module)) {
      const std::optional<BlockId> next =
          index + 1 < frees.size() ? std::optional(frees[index + 1].block) : std::nullopt;
      const bool is_read = next && !is_output_of_head(subject, *next, head.by_module);
      if (!is_read && !fails_before(subject, block, next, head.bytes)) continue;
    }
    kept.push_back(frees[index]);
  }
  frees = std::move(kept);
}

// Outside the repeated layers, only logits, their copies and their gradients have their size, or twice that.
Logits find_logits(const Subject& subject) {
  const Head head = find_head(subject);
  const std::uint64_t size = head.bytes;
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
  remove_outputs_without_loss(subject, found.frees, head);
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
