// Gradients that are held although nothing needs them.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analyze/advice/rules.h"
#include "base/step_names.h"

namespace tidemark::advice {
namespace {

/// Blocks allocated by backward passes, by module and size, in order of birth.
class BackwardBlocks {
 public:
  explicit BackwardBlocks(const Subject& subject) : store_(subject.store) {
    for (const BlockId block : subject.blocks) {
      const Owner& owner = subject.owner(block);
      if (owner.phase == Phase::backward && owner.module.valid()) blocks_[key(block, owner)].push_back(block);
    }
  }

  /// The first similar block that is born in the span and freed: the new value of a gradient, which is added to the old
  /// one.
  [[nodiscard]] std::optional<std::uint64_t> freed_like(BlockId gradient, const Owner& owner,
                                                        const PhaseSpan& span) const {
    const auto alike = blocks_.find(key(gradient, owner));
    if (alike == blocks_.end()) return std::nullopt;
    const auto first = std::ranges::lower_bound(alike->second, span.from, {}, [&](BlockId block) {
      return std::uint64_t{store_.blocks.birth_change[block.value]};
    });
    if (first == alike->second.end() || store_.blocks.birth_change[first->value] >= span.to) return std::nullopt;
    const std::uint32_t death = store_.blocks.death_change[first->value];
    return death == Blocks::kAlive ? std::nullopt : std::optional<std::uint64_t>(death);
  }

 private:
  using Key = std::pair<ModulePathId, std::uint64_t>;
  [[nodiscard]] Key key(BlockId block, const Owner& owner) const {
    return {owner.module, store_.blocks.size[block.value]};
  }

  const Store& store_;
  std::map<Key, std::vector<BlockId>> blocks_;
};

/// Whether a training step begins where an optimizer's step ended: a step that allocates nothing has no span.
bool are_of_optimizer(const Subject& subject) {
  if (subject.steps.source != TrainingSteps::Source::annotation) return false;
  const StepName name = step_name_of(subject.store.definitions.text(subject.steps.mark));
  return name == StepName::planned || name == StepName::optimizer;
}

}  // namespace

// A forward pass right after an optimizer step does not need the gradients of that step. A forward pass after a
// backward pass does: gradients are being accumulated. If a gradient had been freed, the backward pass would keep the
// new value that it now adds to it: so it is absent until that value is freed, if it lives so long.
std::vector<EarlierFree> gradients_in_forward(const Subject& subject) {
  const std::vector<PhaseSpan>& spans = subject.spans;
  const bool knows_optimizer_steps = are_of_optimizer(subject);
  std::optional<BackwardBlocks> backward;  // set if the program has the fault
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    if (owner.category != Category::gradient) continue;
    const EarlierFree life = never_there(subject.store, block);
    auto span = std::ranges::upper_bound(spans, life.from, {}, &PhaseSpan::from);
    for (; span != spans.end() && life.covers(span->from); ++span) {
      if (span->phase != Phase::forward || span == spans.begin()) continue;
      const PhaseSpan& before = *std::prev(span);
      const bool stepped =
          knows_optimizer_steps && subject.steps.begun_by(before.from) < subject.steps.begun_by(span->from);
      if (before.phase != Phase::optimizer && !stepped) continue;
      std::uint64_t until = span->to;
      if (const auto next = std::next(span); next != spans.end() && next->phase == Phase::backward) {
        if (!backward) backward.emplace(subject);
        until = backward->freed_like(block, owner, *next).value_or(until);
      }
      frees.push_back({block, span->from, std::min(until, life.to)});
    }
  }
  return frees;
}

// With gradient_as_bucket_view the gradients are views of the buckets, which stay.
std::vector<EarlierFree> gradient_buckets(const Subject& subject) {
  std::vector<EarlierFree> frees;
  bool has_buckets = false;
  for (const BlockId block : subject.blocks) {
    has_buckets |= subject.is_copy(block, AllocationOrigin::gradient_bucket);
    if (has_buckets && subject.owner(block).category == Category::gradient) {
      frees.push_back(never_there(subject.store, block));
    }
  }
  return frees;
}

}  // namespace tidemark::advice
