// Several calls of a model that wait for the same backward pass.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "analyze/advice/model_calls.h"

namespace tidemark::advice {
namespace {

/// One pass through the body of a loop up to the loss.
struct LoopPass {
  std::vector<BlockId> inputs;  ///< in order of birth
  std::vector<BlockId> made;    ///< by the model and the loss
};

/// Among calls in order of time, the calls from the same line of code as the first, each after inputs were made.
std::vector<LoopPass> passes_of_loop(const Subject& subject, std::vector<ModelCall> calls) {
  const Blocks& blocks = subject.store.blocks;
  const auto stack_of = [&](const ModelCall& call) { return blocks.stack[call.blocks.front().value]; };
  std::erase_if(calls, [&, first = stack_of(calls[0])](const ModelCall& call) { return stack_of(call) != first; });
  std::vector<LoopPass> passes;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    LoopPass pass;
    for (auto block = subject.made_since(calls[n].from(subject)); block != subject.blocks.begin();) {
      --block;
      if (subject.owner(*block).category != Category::input) break;
      pass.inputs.insert(pass.inputs.begin(), *block);
    }
    if (pass.inputs.empty()) break;
    const std::uint64_t next = n + 1 < calls.size() ? calls[n + 1].from(subject) : calls[n].end;
    for (auto block = subject.made_since(calls[n].from(subject));
         block != subject.blocks.end() && blocks.birth_change[block->value] < next; ++block) {
      const Owner& owner = subject.owner(*block);
      if (owner.phase == Phase::forward && owner.category != Category::input) pass.made.push_back(*block);
    }
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace

// As if a backward pass had run after each call: tensors saved by the call are freed before the next one's inputs are
// made, and gradients exist from the first of these passes on. The calls are of one loop, each with separate inputs.
std::vector<EarlierFree> forwards_before_backward(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  std::vector<EarlierFree> frees;
  for (const auto& [backward, of_pass] : calls_by_backward(subject)) {
    const std::vector<LoopPass> passes = passes_of_loop(subject, of_pass);
    if (passes.size() < 2) continue;
    const PhaseSpan& span = subject.spans[backward];
    const auto is_during = [&](std::uint64_t change) { return change >= span.from && change < span.to; };
    const auto is_freed = [&](BlockId block) { return is_during(blocks.death_change[block.value]); };
    for (std::size_t n = 0; n + 1 < passes.size(); ++n) {
      const LoopPass& next = passes[n + 1];
      for (std::size_t input = 0; input < passes[n].inputs.size(); ++input) {
        const BlockId replaced_by = next.inputs[std::min(input, next.inputs.size() - 1)];
        const EarlierFree life = never_there(subject.store, passes[n].inputs[input]);
        if (is_freed(life.block)) frees.push_back({life.block, blocks.birth_change[replaced_by.value] + 1U, life.to});
      }
      for (const BlockId block : passes[n].made) {
        if (!is_freed(block)) continue;
        frees.push_back({block, blocks.birth_change[next.inputs.front().value], never_there(subject.store, block).to});
      }
    }
    const std::uint64_t first_backward = blocks.birth_change[passes[1].inputs.front().value];
    for (auto block = subject.made_since(span.from); block != subject.blocks.end(); ++block) {
      const std::uint64_t birth = blocks.birth_change[block->value];
      if (!is_during(birth)) break;
      if (!is_freed(*block) && subject.owner(*block).category == Category::gradient) {
        frees.push_back({*block, first_backward, birth, {}, true});
      }
    }
  }
  return frees;
}

}  // namespace tidemark::advice
