// Calls of models that make an autograd graph: which no backward pass goes back through (validation, generation,
// teachers), or several of which wait for the same one.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

using Parts = std::vector<std::string_view>;

/// Of two elements of a list, by their places: numbers without leading zeros.
bool comes_before(std::string_view left, std::string_view right) {
  return std::pair(left.size(), left) < std::pair(right.size(), right);
}

Parts parts_of(std::string_view path) {
  Parts parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::size_t common_parts(const Parts& left, const Parts& right) {
  const auto differ = std::ranges::mismatch(left, right);
  return static_cast<std::size_t>(differ.in1 - left.begin());
}

/// What one call of an outermost module allocated and kept for longer than its own code needed it.
struct Call {
  std::vector<BlockId> blocks;    ///< of its modules, in order of birth
  std::vector<EarlierFree> held;  ///< from when no module's call has them any more
  std::uint64_t end = 0;          ///< index into Store::live_changes

  [[nodiscard]] std::uint64_t from(const Subject& subject) const {
    return subject.store.blocks.birth_change[blocks.front().value];
  }
};

class CallFinder {
 public:
  explicit CallFinder(const Subject& subject) : subject_(subject), blocks_(subject.store.blocks) {
    parts_.reserve(subject.attribution.modules.size());
    for (const ModulePath& module : subject.attribution.modules) parts_.push_back(parts_of(module.path));
  }

  std::vector<Call> find() {
    for (const BlockId block : subject_.blocks) {
      const Owner& owner = subject_.owner(block);
      const bool in_module = owner.phase == Phase::forward && owner.module.valid();
      drop_temporaries(blocks_.birth_change[block.value]);
      if (!in_module || is_called_again(block)) end_call(blocks_.birth_change[block.value]);
      if (in_module) call_.blocks.push_back(block);
    }
    end_call(subject_.store.live_changes.size());
    return std::move(calls_);
  }

 private:
  [[nodiscard]] const Parts& parts(BlockId block) const { return parts_[subject_.owner(block).module.value]; }

  // What an operator frees before it returns, such as a workspace, is not its result.
  void drop_temporaries(std::uint64_t change) {
    std::vector<BlockId>& made = call_.blocks;
    while (!made.empty() && blocks_.death_change[made.back().value] < change) made.pop_back();
  }

  // After the last element of a list comes an earlier one.
  [[nodiscard]] bool is_called_again(BlockId block) const {
    if (call_.blocks.empty()) return false;
    const Parts& before = parts(call_.blocks.back());
    const Parts& now = parts(block);
    const std::size_t common = common_parts(before, now);
    if (common == before.size() || common == now.size()) return false;
    return is_place(before[common]) && is_place(now[common]) && comes_before(now[common], before[common]);
  }

  void end_call(std::uint64_t change) {
    if (call_.blocks.size() > 1) {
      call_.end = change;
      find_held();
      calls_.push_back(std::move(call_));
    }
    call_ = {};
  }

  // A block is needed until the innermost call is over that goes on after it: the variables of that call may have it.
  // Where that runs a list of modules, each gets the result of the one before, which is freed when it returns.
  void find_held() {
    std::vector<std::uint64_t> ends;  // by number of parts: where the call of the module with that path ends
    std::vector<std::uint64_t> next_ends;
    for (std::size_t n = call_.blocks.size(); n-- > 0;) {
      const BlockId block = call_.blocks[n];
      const Parts& path = parts(block);
      const bool is_last = n + 1 == call_.blocks.size();
      const std::size_t common = is_last ? 0 : common_parts(path, parts(call_.blocks[n + 1]));
      const std::uint64_t next = is_last ? call_.end : blocks_.birth_change[call_.blocks[n + 1].value];
      next_ends = std::exchange(ends, {});
      next_ends.resize(std::max(next_ends.size(), common + 2), call_.end);
      for (std::size_t depth = 0; depth <= path.size(); ++depth) {
        ends.push_back(depth <= common ? next_ends[depth] : next);
      }
      if (is_last) continue;  // the result of all of it
      const Parts& next_path = parts(call_.blocks[n + 1]);
      const bool in_list =
          common < path.size() && is_place(path[common]) && common < next_path.size() && is_place(next_path[common]);
      const std::uint64_t from = in_list ? next_ends[common + 1] : ends[common];
      const EarlierFree life = never_there(subject_.store, block);
      if (from < life.to) call_.held.push_back({block, from, life.to});
    }
  }

  const Subject& subject_;
  const Blocks& blocks_;
  std::vector<Parts> parts_;  // by ModulePathId
  Call call_;
  std::vector<Call> calls_;
};

/// The calls that make autograd nodes.
std::vector<Call> graphs(const Subject& subject) {
  const std::vector<std::uint64_t>& sequence = subject.store.blocks.sequence;
  std::vector<Call> calls = CallFinder(subject).find();
  std::erase_if(calls, [&](const Call& call) {
    return sequence[call.blocks.back().value] == sequence[call.blocks.front().value];
  });
  return calls;
}

/// The backward pass that is under way, as an index into Subject::spans.
std::optional<std::size_t> backward_at(const Subject& subject, std::uint64_t change) {
  const std::size_t begun = subject.spans_until(change);
  return begun > 0 && subject.spans[begun - 1].phase == Phase::backward ? std::optional(begun - 1) : std::nullopt;
}

enum class Fate : std::uint8_t { backward, unused, unknown };

/// Whether a backward pass freed some of a call's blocks. Unknown where others are alive at the end, or memory ran out
/// before they were freed.
Fate fate_of(const Subject& subject, const Call& call) {
  Fate fate = call.held.empty() ? Fate::unknown : Fate::unused;
  for (const EarlierFree& away : call.held) {
    const bool failed = std::ranges::any_of(subject.store.out_of_memory, [&](const OutOfMemory& failure) {
      return subject.store.blocks.birth_change[away.block.value] < failure.change_count &&
             failure.change_count <= away.to;
    });
    if (failed || away.to == EarlierFree::kEnd) {
      fate = Fate::unknown;
      continue;
    }
    if (backward_at(subject, away.to)) return Fate::backward;
  }
  return fate;
}

/// One pass through the body of a loop up to the loss.
struct LoopPass {
  std::vector<BlockId> inputs;  ///< in order of birth
  std::vector<BlockId> made;    ///< by the model and the loss
};

/// Of calls in order of time, those from the first on that are of one line of code, each after inputs were made.
std::vector<LoopPass> passes_of_loop(const Subject& subject, const std::vector<Call>& calls) {
  const Blocks& blocks = subject.store.blocks;
  std::set<StackId> input_stacks;
  std::vector<LoopPass> passes;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const BlockId first = calls[n].blocks.front();
    if (blocks.stack[first.value] != blocks.stack[calls[0].blocks.front().value]) break;
    LoopPass pass;
    for (auto block = subject.made_since(calls[n].from(subject)); block != subject.blocks.begin();) {
      --block;
      const bool is_input = n == 0 ? subject.owner(*block).category == Category::input
                                   : input_stacks.contains(blocks.stack[block->value]);
      if (!is_input) break;
      if (n == 0) input_stacks.insert(blocks.stack[block->value]);
      pass.inputs.insert(pass.inputs.begin(), *block);
    }
    if (pass.inputs.empty()) break;
    const std::uint64_t next = n + 1 < calls.size() ? calls[n + 1].from(subject) : calls[n].end;
    for (auto block = subject.made_since(calls[n].from(subject));
         block != subject.blocks.end() && blocks.birth_change[block->value] < next; ++block) {
      const bool is_input = input_stacks.contains(blocks.stack[block->value]);
      if (subject.owner(*block).phase == Phase::forward && !is_input) pass.made.push_back(*block);
    }
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace

// As if a backward pass had run after each call: what the call has saved is gone when the next one's inputs are made,
// and gradients are there from the first of these passes on. Calls are of one loop, each with inputs of its own.
std::vector<EarlierFree> forwards_before_backward(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  if (blocks.sequence.empty()) return {};
  std::map<std::size_t, std::vector<Call>> calls;  // by the backward pass, index into Subject::spans
  for (Call& call : graphs(subject)) {
    for (const EarlierFree& saved : call.held) {
      const auto backward = backward_at(subject, saved.to);
      if (!backward) continue;
      calls[*backward].push_back(std::move(call));
      break;
    }
  }
  std::vector<EarlierFree> frees;
  for (const auto& [backward, of_pass] : calls) {
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

// As under torch.no_grad(): freed when no module's code has it any more. Where nothing says whether a backward pass
// would have come, the call is one of more than twice as many in a row as any backward pass went back through.
std::vector<EarlierFree> inference_with_autograd(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  if (blocks.sequence.empty()) return {};
  const std::vector<Call> calls = graphs(subject);
  std::vector<Fate> fates;
  std::map<std::size_t, std::size_t> in_span;  // how many calls
  std::vector<std::size_t> spans;              // of each call
  fates.reserve(calls.size());
  spans.reserve(calls.size());
  std::size_t most_used = 0;
  for (const Call& call : calls) {
    spans.push_back(subject.spans_until(call.from(subject)));
    ++in_span[spans.back()];
    fates.push_back(fate_of(subject, call));
  }
  for (std::size_t n = 0; n < calls.size(); ++n) {
    if (fates[n] == Fate::backward) most_used = std::max(most_used, in_span[spans[n]]);
  }
  std::vector<EarlierFree> frees;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const bool unused = fates[n] == Fate::unused ||
                        (fates[n] == Fate::unknown && in_span[spans[n]] > 2 * std::max<std::size_t>(1, most_used));
    if (unused) frees.insert(frees.end(), calls[n].held.begin(), calls[n].held.end());
  }
  return frees;
}

}  // namespace tidemark::advice
