// Unused autograd graphs: no backward pass goes through them (validation, generation, teachers), or no optimizer uses
// the gradients that are computed there.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analyze/advice/model_calls.h"

namespace tidemark::advice {
namespace {

/// Whether a request failed while the block was alive: then a later backward pass might have freed it.
bool met_failure(const Subject& subject, const EarlierFree& away) {
  return std::ranges::any_of(subject.store.out_of_memory, [&](const OutOfMemory& failure) {
    return subject.store.blocks.birth_change[away.block.value] < failure.change_count &&
           failure.change_count <= away.to;
  });
}

enum class Fate : std::uint8_t { backward, unused, unknown };

/// The sequence numbers of the autograd nodes that allocated memory in a backward pass, in increasing order.
std::vector<std::uint64_t> nodes_that_ran(const Subject& subject) {
  const std::vector<std::uint64_t>& node_sequence = subject.store.blocks.node_sequence;
  std::vector<std::uint64_t> nodes;
  for (const BlockId block : subject.blocks) {
    const bool has_node = !node_sequence.empty() && node_sequence[block.value] != 0;
    if (has_node && subject.owner(block).phase == Phase::backward) nodes.push_back(node_sequence[block.value]);
  }
  std::ranges::sort(nodes);
  return nodes;
}

/// Whether one of `nodes` was made in a call. Its blocks have the number of the next node when they are allocated.
bool made_one_of(const std::vector<std::uint64_t>& nodes, const Subject& subject, const ModelCall& call) {
  const std::vector<std::uint64_t>& sequence = subject.store.blocks.sequence;
  const auto node = std::ranges::lower_bound(nodes, sequence[call.blocks.front().value]);
  return node != nodes.end() && *node < sequence[call.blocks.back().value];
}

/// Whether a backward pass freed some of a call's blocks, or went back through it and kept them (retain_graph).
/// Unknown if others are alive at the end, or memory ran out before they were freed.
Fate fate_of(const Subject& subject, const ModelCall& call, const std::vector<std::uint64_t>& nodes) {
  if (made_one_of(nodes, subject, call)) return Fate::backward;
  Fate fate = call.held.empty() ? Fate::unknown : Fate::unused;
  for (const EarlierFree& away : call.held) {
    if (met_failure(subject, away) || away.to == EarlierFree::kEnd) {
      fate = Fate::unknown;
      continue;
    }
    if (backward_at(subject, away.to)) return Fate::backward;
  }
  return fate;
}

/// The modules that a backward pass goes through, and the modules that contain them.
std::set<NnModuleId> modules_of_backward(const Subject& subject, const PhaseSpan& span) {
  const Definitions& definitions = subject.store.definitions;
  std::set<NnModuleId> modules;
  for (auto block = subject.made_since(span.from);
       block != subject.blocks.end() && subject.store.blocks.birth_change[block->value] < span.to; ++block) {
    // Recomputation has its own module objects in the stack.
    for (const StackId stack : {subject.owner(*block).forward_stack, subject.store.blocks.stack[block->value]}) {
      for (const NnModuleId module : modules_in(definitions, stack)) modules.insert(module);
    }
  }
  return modules;
}

/// Memory of one module of a call, including its children.
struct Part {
  std::set<NnModuleId> modules;
  std::vector<EarlierFree> held;
  bool is_used = false;        ///< a backward pass freed some of it, or might have later
  bool made_nodes = false;     ///< of autograd
  std::uint64_t sequence = 0;  ///< of the first block
};

// For calls with a backward pass, the modules that it does not go through: a teacher beside its student. Only several
// modules, because a single one may need nothing in its backward pass.
void add_unused_parts(const Subject& subject, const ModelCall& call, std::vector<EarlierFree>& frees) {
  const Blocks& blocks = subject.store.blocks;
  const std::optional<std::size_t> backward = backward_of(subject, call);
  if (!backward) return;
  const std::set<NnModuleId> used = modules_of_backward(subject, subject.spans[*backward]);
  std::map<BlockId, EarlierFree> held;
  for (const EarlierFree& away : call.held) held.emplace(away.block, away);
  std::map<NnModuleId, Part> parts;  // by the outermost unused module
  for (const BlockId block : call.blocks) {
    const std::vector<NnModuleId> modules = modules_in(subject.store.definitions, blocks.stack[block.value]);
    const auto top = std::ranges::find_if(modules, [&](NnModuleId module) { return !used.contains(module); });
    if (top == modules.end()) continue;
    const std::uint64_t sequence = blocks.sequence[block.value];
    const auto [entry, is_first] = parts.try_emplace(*top);
    Part& part = entry->second;
    if (is_first) part.sequence = sequence;
    part.made_nodes |= sequence != part.sequence;
    part.modules.insert(modules.back());
    const auto away = held.find(block);
    if (away == held.end() || away->second.to == EarlierFree::kEnd) continue;
    part.is_used |= met_failure(subject, away->second) || backward_at(subject, away->second.to);
    part.held.push_back(away->second);
  }
  for (const auto& [top, part] : parts) {
    if (part.is_used || !part.made_nodes || part.modules.size() < 2) continue;
    frees.insert(frees.end(), part.held.begin(), part.held.end());
  }
}

/// Backward passes that begin at the same code: modules with parameter gradients, and modules with gradients in an
/// optimizer.
struct Gradients {
  std::set<NnModuleId> made;
  std::set<NnModuleId> used;
  bool all_known = true;  ///< the optimizer's gradients are known for all of them
};

class UnusedGradients {
 public:
  explicit UnusedGradients(const Subject& subject) : subject_(subject), calls_(calls_by_backward(subject)) {
    for (const ModelTensor& tensor : subject.store.definitions.tensors) {
      if (tensor.role != ModelTensor::Role::gradient) continue;
      asked_.emplace_back(subject.store.changes_until(tensor.time_ns), tensor.module);
    }
    std::ranges::sort(asked_);
  }

  std::vector<EarlierFree> find() {
    if (asked_.empty()) return {};
    std::map<StackId, Gradients> gradients;  // by the stack of the last call's result
    for (const auto& [backward, calls] : calls_) read(backward, gradients[key(calls)]);
    for (const auto& [backward, calls] : calls_) {
      const Gradients& known = gradients[key(calls)];
      if (known.all_known && !known.used.empty()) add(backward, calls, known);
    }
    return std::move(frees_);
  }

 private:
  [[nodiscard]] StackId key(const std::vector<ModelCall>& calls) const {
    return subject_.store.blocks.stack[calls.back().blocks.front().value];
  }

  [[nodiscard]] NnModuleId innermost(StackId stack) const {
    const std::vector<NnModuleId> modules = modules_in(subject_.store.definitions, stack);
    return modules.empty() ? NnModuleId{} : modules.back();
  }

  /// Calls `visit` for each block of a backward pass, with the module whose gradient it computes.
  template <typename Visit>
  void visit(std::size_t backward, const Visit& visit) const {
    const PhaseSpan& span = subject_.spans[backward];
    for (auto block = subject_.made_since(span.from);
         block != subject_.blocks.end() && subject_.store.blocks.birth_change[block->value] < span.to; ++block) {
      visit(*block, innermost(subject_.owner(*block).forward_stack));
    }
  }

  // Optimizers report their tensors at the end of some of their steps: reports between this backward pass and the next
  // belong to this one.
  void read(std::size_t backward, Gradients& gradients) const {
    visit(backward, [&](BlockId block, NnModuleId module) {
      if (subject_.owner(block).category == Category::gradient && module.valid()) gradients.made.insert(module);
    });
    std::size_t next = backward + 1;
    while (next < subject_.spans.size() && subject_.spans[next].phase != Phase::backward) ++next;
    const std::uint64_t end = next < subject_.spans.size() ? subject_.spans[next].from : EarlierFree::kEnd;
    for (auto asked = std::ranges::lower_bound(asked_, std::pair(subject_.spans[backward].from, NnModuleId{0}));
         asked != asked_.end() && asked->first < end; ++asked) {
      gradients.all_known &= asked->second.valid();
      gradients.used.insert(asked->second);
    }
  }

  // From the beginning of the forward pass up to the first trained module: later modules may need their graph to reach
  // it.
  void add(std::size_t backward, const std::vector<ModelCall>& calls, const Gradients& known) {
    const Blocks& blocks = subject_.store.blocks;
    const BlockId trained = first_trained(calls.front().from(subject_), subject_.spans[backward].from, known.used);
    if (!trained.valid()) return;
    std::set<NnModuleId> modules;
    std::vector<EarlierFree> held;
    BlockId result;  // input of the first trained module
    for (const ModelCall& call : calls) {
      const auto after = std::ranges::lower_bound(call.blocks, trained);
      for (auto block = call.blocks.begin(); block != after; ++block) {
        modules.insert(innermost(blocks.stack[block->value]));
        result = *block;
      }
      const bool goes_on = after != call.blocks.begin() && after != call.blocks.end();
      for (const EarlierFree& away : call.held) {
        const bool is_read = goes_on && away.block == result;
        if (away.block < trained && !is_read && away.to != EarlierFree::kEnd) held.push_back(away);
      }
    }
    if (std::ranges::none_of(known.made, [&](NnModuleId module) { return modules.contains(module); })) return;
    std::ranges::move(held, std::back_inserter(frees_));
    const NnModuleId reader = innermost(blocks.stack[trained.value]);
    visit(backward, [&](BlockId block, NnModuleId module) {
      const Category category = subject_.owner(block).category;
      const bool is_of_result =
          module == reader && category == Category::temporary && blocks.size[block.value] == blocks.size[result.value];
      const bool is_of_modules = modules.contains(module) && category != Category::workspace;
      if (is_of_result || is_of_modules) frees_.push_back(never_there(subject_.store, block));
    });
  }

  /// The first block allocated by one of these modules or a module that contains one; invalid: none is called.
  [[nodiscard]] BlockId first_trained(std::uint64_t from, std::uint64_t to, std::set<NnModuleId> modules) const {
    const Store& store = subject_.store;
    const auto begin = subject_.made_since(from);
    const auto end = subject_.made_since(to);
    for (auto block = begin; block != end; ++block) {
      const std::vector<NnModuleId> called = modules_in(store.definitions, store.blocks.stack[block->value]);
      const auto is_one = [&](NnModuleId module) { return modules.contains(module); };
      const auto trained = std::ranges::find_if(called.rbegin(), called.rend(), is_one);
      modules.insert(called.begin(), trained.base());
    }
    const auto first = std::find_if(
        begin, end, [&](BlockId block) { return modules.contains(innermost(store.blocks.stack[block.value])); });
    return first == end ? BlockId{} : *first;
  }

  const Subject& subject_;
  std::map<std::size_t, std::vector<ModelCall>> calls_;
  std::vector<std::pair<std::uint64_t, NnModuleId>> asked_;  // gradients in an optimizer: time and module
  std::vector<EarlierFree> frees_;
};

}  // namespace

// As under torch.no_grad(): freed when no module's code uses it any more. If it is unknown whether a backward pass
// would have come, the call must be one of more than twice as many in a row as any backward pass went through.
std::vector<EarlierFree> inference_with_autograd(const Subject& subject) {
  const std::vector<ModelCall> calls = calls_with_graph(subject);
  const std::vector<std::uint64_t> nodes = nodes_that_ran(subject);
  std::vector<Fate> fates;
  std::map<std::size_t, std::size_t> in_span;  // how many calls
  std::vector<std::size_t> spans;              // of each call
  fates.reserve(calls.size());
  spans.reserve(calls.size());
  std::size_t most_used = 0;
  for (const ModelCall& call : calls) {
    spans.push_back(subject.spans_until(call.from(subject)));
    ++in_span[spans.back()];
    fates.push_back(fate_of(subject, call, nodes));
  }
  for (std::size_t n = 0; n < calls.size(); ++n) {
    if (fates[n] == Fate::backward) most_used = std::max(most_used, in_span[spans[n]]);
  }
  std::vector<EarlierFree> frees;
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const bool unused = fates[n] == Fate::unused ||
                        (fates[n] == Fate::unknown && in_span[spans[n]] > 2 * std::max<std::size_t>(1, most_used));
    if (unused) frees.insert(frees.end(), calls[n].held.begin(), calls[n].held.end());
    if (fates[n] == Fate::backward) add_unused_parts(subject, calls[n], frees);
  }
  return frees;
}

// As if these modules had been called in torch.no_grad().
std::vector<EarlierFree> unused_gradients(const Subject& subject) {
  return UnusedGradients(subject).find();
}

}  // namespace tidemark::advice
