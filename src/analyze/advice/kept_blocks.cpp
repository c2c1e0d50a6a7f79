// Blocks kept by a reference: blocks of several steps that are freed together, and blocks of a call that ran out of
// memory.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analyze/advice/model_calls.h"
#include "analyze/leaks/kept_together.h"

namespace tidemark::advice {
namespace {

/// Minimum number of collected results.
constexpr std::size_t kMinResults = 16;

/// Minimum number of results that a variable holds until the next one exists.
constexpr std::size_t kMinReplaced = 2;

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

/// The last block that a call of an outermost module leaves: what comes next is allocated elsewhere.
struct Result {
  BlockId block;
  bool has_graph = true;  ///< the call, or the code that reads the result, made autograd nodes
};

std::vector<Result> results_of_calls(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  const auto outermost = [&](BlockId block) {
    const auto modules = modules_in(subject.store.definitions, blocks.stack[block.value]);
    return modules.empty() ? NnModuleId{} : modules.front();
  };
  std::vector<Result> results;
  NnModuleId called;
  std::vector<BlockId> call;
  for (const BlockId block : subject.blocks) {
    const bool in_forward = subject.owner(block).phase == Phase::forward;
    const NnModuleId module = in_forward ? outermost(block) : NnModuleId{};
    if (module != called) {
      const auto result = std::find_if(call.rbegin(), call.rend(), [&](BlockId made) {
        return blocks.death_change[made.value] > blocks.birth_change[block.value];
      });
      if (called.valid() && result != call.rend()) {
        const BlockId first = call.front();
        const bool same_thread = blocks.thread[first.value] == blocks.thread[block.value];
        const bool has_graph =
            blocks.sequence.empty() || !same_thread || blocks.sequence[first.value] != blocks.sequence[block.value];
        results.push_back({*result, has_graph});
      }
      call.clear();
    }
    called = module;
    call.push_back(block);
  }
  return results;
}

/// The next block of a thread that is allocated after an autograd node was made there; invalid: there is none.
BlockId next_with_graph(const Subject& subject, BlockId result) {
  const Blocks& blocks = subject.store.blocks;
  const auto next =
      std::find_if(std::ranges::upper_bound(subject.blocks, result), subject.blocks.end(), [&](BlockId block) {
        return blocks.thread[block.value] == blocks.thread[result.value] &&
               blocks.sequence[block.value] > blocks.sequence[result.value];
      });
  return next == subject.blocks.end() ? BlockId{} : *next;
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

// Results of models that the same code makes in later steps, and that are freed once the next ones exist: a variable
// holds them. As if they were freed when their step ends, or the evaluation that made them without a graph. What other
// modules return may be a state that the next call reads.
std::vector<EarlierFree> held_results(const Subject& subject) {
  const auto& starts = subject.steps.starts;
  std::map<std::pair<StackId, std::uint64_t>, std::vector<Result>> chains;  // by stack and size
  for (const Result& result : results_of_calls(subject)) {
    const Owner& owner = subject.owner(result.block);
    const bool may_be = owner.category == Category::activation || owner.category == Category::temporary ||
                        owner.category == Category::unknown;
    const StackId stack = subject.store.blocks.stack[result.block.value];
    if (!stack.valid() || !may_be || subject.attribution.has_model_tensor(result.block)) continue;
    chains[{stack, subject.store.blocks.size[result.block.value]}].push_back(result);
  }
  std::vector<EarlierFree> frees;
  for (const auto& entry : chains) {
    const std::vector<Result>& chain = entry.second;
    const auto birth = [&](std::size_t index) {
      return std::uint64_t{subject.store.blocks.birth_change[chain[index].block.value]};
    };
    std::vector<EarlierFree> held;
    std::size_t next_steps = 0;  // how often the next result is of a later step
    std::size_t replaced = 0;    // how many of these are held until then
    for (std::size_t index = 0; index < chain.size(); ++index) {
      EarlierFree life = never_there(subject.store, chain[index].block);
      const std::size_t step = subject.steps.begun_by(birth(index));
      if (step >= starts.size()) break;
      if (index + 1 < chain.size() && starts[step].event_count <= birth(index + 1)) {
        const bool longer = index + 2 < chain.size() && life.to > birth(index + 2);
        ++next_steps;
        if (life.to > birth(index + 1) && !longer) ++replaced;
      }
      life.from = starts[step].event_count;
      if (!chain[index].has_graph) {
        const BlockId next = next_with_graph(subject, chain[index].block);
        life.from = next.valid() ? subject.store.blocks.birth_change[next.value] : life.to;
      }
      if (life.from < life.to) held.push_back(life);
    }
    if (replaced >= kMinReplaced && replaced * 10 >= next_steps * 9)
      frees.insert(frees.end(), held.begin(), held.end());
  }
  return frees;
}

}  // namespace tidemark::advice
