// Blocks kept by a reference: blocks of several steps that are freed together, and blocks of a call that ran out of
// memory.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analyze/advice/rules.h"
#include "analyze/leaks/kept_together.h"

namespace tidemark::advice {
namespace {

/// Minimum number of collected results.
constexpr std::size_t kMinResults = 16;

/// Minimum number of times that a tensor is reallocated with a larger size.
constexpr std::size_t kMinEnlargements = 4;
/// Maximum rest that PyTorch's allocator leaves unsplit in a large block.
constexpr std::uint64_t kMaxUnsplit = std::uint64_t{1} << 20;

// In the tree of stacks, a caller's node has a smaller number than its callees.
bool is_below(const Definitions& definitions, StackId stack, StackId node) {
  while (stack.valid() && stack.value > node.value) stack = definitions.stacks[stack.value].parent;
  return stack == node;
}

/// The outermost frame of a stack that the other one has not. Invalid: it has all.
StackId first_apart(const Definitions& definitions, StackId stack, StackId other) {
  StackId apart;
  while (stack.valid() && stack != other) {
    if (other.valid() && other.value > stack.value) {
      other = definitions.stacks[other.value].parent;
    } else {
      apart = stack;
      stack = definitions.stacks[stack.value].parent;
    }
  }
  return apart;
}

/// The next request of a thread after its failed request, which may fail too; invalid: there is none.
StackId next_request(const Subject& subject, const OutOfMemory& failure) {
  const Blocks& blocks = subject.store.blocks;
  const auto next = std::find_if(subject.made_since(failure.change_count), subject.blocks.end(), [&](BlockId block) {
    return blocks.thread[block.value] == failure.thread && blocks.stack[block.value].valid();
  });
  for (const OutOfMemory& later : subject.store.out_of_memory) {
    const bool is_later = later.time_ns > failure.time_ns && later.thread == failure.thread && later.stack.valid();
    const bool is_first = next == subject.blocks.end() || later.change_count <= blocks.birth_change[next->value];
    if (is_later && is_first) return later.stack;
  }
  return next == subject.blocks.end() ? StackId{} : blocks.stack[next->value];
}

}  // namespace

std::vector<EarlierFree> kept_over_steps(const Subject& subject) {
  std::vector<EarlierFree> frees;
  for (const KeptTogether& kept :
       find_kept_together(subject.store, subject.steps, subject.device, &subject.attribution)) {
    frees.insert(frees.end(), kept.blocks.begin(), kept.blocks.end());
  }
  return frees;
}

// From the outermost frame on, the stacks of a failed request and of its thread's next allocation, in the handler, are
// the same up to the code with the try statement. Blocks allocated consecutively below the first different frame belong
// to the failed call: the exception's traceback has its frames, and these have their variables.
std::vector<EarlierFree> failed_call(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  std::map<BlockId, EarlierFree> frees;
  for (const OutOfMemory& failure : subject.store.out_of_memory) {
    if (failure.device != subject.device || !failure.stack.valid()) continue;
    const auto after = subject.made_since(failure.change_count);
    const Definitions& definitions = subject.store.definitions;
    const StackId next = next_request(subject, failure);
    const StackId call = next.valid() ? first_apart(definitions, failure.stack, next) : StackId{};
    if (!call.valid()) continue;
    for (auto block = after; block != subject.blocks.begin();) {
      --block;
      const bool same_thread = blocks.thread[block->value] == failure.thread;
      if (same_thread && !is_below(definitions, blocks.stack[block->value], call)) break;
      const EarlierFree life = never_there(subject.store, *block);
      if (life.to < failure.change_count || subject.attribution.has_model_tensor(*block)) continue;
      frees.try_emplace(*block, EarlierFree{*block, failure.change_count, life.to});
    }
  }
  std::vector<EarlierFree> list;
  list.reserve(frees.size());
  for (const auto& [block, away] : frees) list.push_back(away);
  return list;
}

// Each block is freed after the next and larger one of its stack was allocated: as if the parts were collected
// elsewhere.
std::vector<EarlierFree> repeated_concatenation(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  std::map<StackId, std::vector<BlockId>> chains;  // the latest block of each chain
  std::vector<EarlierFree> frees;
  const auto end = [&](std::vector<BlockId>& chain) {
    const bool doubled =
        chain.size() > kMinEnlargements && blocks.size[chain.back().value] / 2 >= blocks.size[chain.front().value];
    for (const BlockId block : chain) {
      if (doubled) frees.push_back(never_there(subject.store, block));
    }
    chain.clear();
  };
  for (const BlockId block : subject.blocks) {
    const StackId stack = blocks.stack[block.value];
    if (!stack.valid()) continue;
    std::vector<BlockId>& chain = chains[stack];
    if (!chain.empty()) {
      const BlockId last = chain.back();
      const std::uint64_t before = blocks.size[last.value];
      const std::uint64_t size = blocks.size[block.value];
      const bool is_larger = size > before || (before > kMaxUnsplit && size + kMaxUnsplit > before);
      const bool is_replaced = is_larger && blocks.death_change[last.value] > blocks.birth_change[block.value];
      const bool one_before_is_gone =
          chain.size() < 2 || blocks.death_change[chain[chain.size() - 2].value] < blocks.birth_change[block.value];
      if (!is_replaced || !one_before_is_gone) end(chain);
    }
    chain.push_back(block);
  }
  for (auto& [stack, chain] : chains) end(chain);
  return frees;
}

// Blocks of one stack, made in calls of modules without autograd nodes, that are freed together, with no allocation in
// between: one list holds them. Each is read until the next one is made.
std::vector<EarlierFree> collected_results(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  if (blocks.sequence.empty()) return {};
  const auto births_until = [&](std::uint32_t change) { return subject.made_since(change) - subject.blocks.begin(); };
  std::map<std::pair<StackId, std::ptrdiff_t>, std::vector<BlockId>> groups;  // by the time of their free
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    const bool may_be = owner.making == AllocationOrigin::nothing_known &&
                        (owner.category == Category::activation || owner.category == Category::temporary ||
                         owner.category == Category::unknown);
    const StackId stack = blocks.stack[block.value];
    if (!stack.valid() || owner.phase != Phase::forward || !may_be) continue;
    if (subject.attribution.has_model_tensor(block)) continue;
    groups[{stack, births_until(blocks.death_change[block.value])}].push_back(block);
  }
  std::vector<EarlierFree> frees;
  for (const auto& [key, together] : groups) {
    const std::uint32_t first = together.front().value;
    const std::uint32_t last = together.back().value;
    const bool has_graph =
        blocks.thread[first] != blocks.thread[last] || blocks.sequence[first] != blocks.sequence[last];
    if (together.size() < kMinResults || has_graph) continue;
    for (std::size_t index = 0; index + 1 < together.size(); ++index) {
      const std::uint64_t next = blocks.birth_change[together[index + 1].value];
      frees.push_back({together[index], next, never_there(subject.store, together[index]).to});
    }
  }
  return frees;
}

}  // namespace tidemark::advice
