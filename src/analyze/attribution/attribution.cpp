#include "analyze/attribution/attribution.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "analyze/attribution/component_rules.h"
#include "analyze/attribution/forward_sides.h"
#include "analyze/attribution/lifetimes.h"
#include "analyze/attribution/model_tensors.h"
#include "analyze/attribution/module_paths.h"
#include "analyze/attribution/phase_runs.h"
#include "analyze/attribution/stack_facts.h"

namespace tidemark {
namespace {

Category category_of(ModelTensor::Role role) {
  switch (role) {
    case ModelTensor::Role::parameter:
      return Category::parameter;
    case ModelTensor::Role::buffer:
      return Category::buffer;
    case ModelTensor::Role::gradient:
      return Category::gradient;
    case ModelTensor::Role::optimizer_state:
      return Category::optimizer_state;
  }
  return Category::unknown;
}

class Attributor {
 public:
  Attributor(const Store& store, const ComponentRules& rules)
      : store_(store),
        rules_(rules),
        modules_(name_modules(store.definitions, rules)),
        stacks_(read_stacks(store.definitions, modules_, rules)),
        runs_(find_phase_runs(store, phases_of_blocks(store, stacks_))),
        forward_sides_(store, runs_) {}

  Attribution attribute() && {
    Attribution attribution;
    attribution.tensors = find_model_tensors(store_);
    const std::vector<TensorInBlock>& tensors = attribution.tensors;
    const std::vector<BlockId> workspaces = find_workspaces(store_, runs_);
    const Lifetimes lifetimes(store_, runs_, tensors);
    auto tensor = tensors.begin();
    auto workspace = workspaces.begin();
    const Blocks& blocks = store_.blocks;
    attribution.blocks.reserve(blocks.count());
    for (std::uint32_t block = 0; block < blocks.count(); ++block) {
      Owner& owner = attribution.blocks.emplace_back();
      owner.phase = runs_.run(block).phase;
      owner.making = facts(blocks.stack[block]).making;
      name_module(owner, blocks.stack[block]);
      go_to_forward_side(owner, block);
      const bool is_workspace = workspace != workspaces.end() && workspace->value == block;
      if (is_workspace) ++workspace;
      if (tensor != tensors.end() && tensor->block.value == block) {
        take(owner, *tensor++);
      } else if (is_workspace) {
        set_category(owner, Category::workspace);
        owner.component = Component::other;  // it serves all of them
      } else if (!is_driver_memory(store_.devices[blocks.device[block]].device)) {
        set_category(owner, lifetimes.category(block, owner.making));
      }
    }
    for (const OutOfMemory& request : store_.out_of_memory) {
      Owner& owner = attribution.out_of_memory.emplace_back();
      owner.phase = phase_of(store_.definitions, facts(request.stack), request.node, request.thread);
      name_module(owner, request.stack);
      if (request.node.valid()) go_to(owner, forward_sides_.of(request.node, request.node_sequence, BlockId{}));
      set_category(owner, lifetimes.usual_category(owner.phase, request.stack, request.requested));
    }
    attribution.modules = std::move(modules_.paths);
    attribution.phases = phase_spans(store_, runs_);
    return attribution;
  }

 private:
  [[nodiscard]] StackFacts facts(StackId stack) const {
    return stack.value < stacks_.size() ? stacks_[stack.value] : StackFacts{};
  }

  static void set_category(Owner& owner, Category category) {
    owner.category = category;
    owner.category_confidence = category == Category::unknown ? Confidence::unknown : Confidence::estimated;
  }

  void name_module(Owner& owner, StackId stack) const {
    const StackFacts facts = this->facts(stack);
    owner.module = facts.module;
    owner.module_confidence = facts.module.valid() ? Confidence::exact : Confidence::unknown;
    owner.component = rules_.component(facts.component);
  }

  // Nodes that accumulate gradients have no number; each runs right after the node that made the gradient.
  void go_to_forward_side(Owner& owner, std::uint32_t block) {
    const Blocks& blocks = store_.blocks;
    if (blocks.node.empty() || !blocks.node[block].valid()) return go_to_whole_model(owner, blocks.stack[block]);
    const AutogradNodeId node = blocks.node[block];
    const std::uint64_t sequence = blocks.node_sequence[block];
    const BlockId found = facts(blocks.stack[block]).in_backward_hook
                              ? forward_sides_.after(node, sequence)
                              : forward_sides_.of(node, sequence, BlockId{block});
    BlockId& latest = latest_side_[blocks.thread[block]];
    if (found.valid()) latest = found;
    go_to(owner, latest);
  }

  // Work of a backward pass between its nodes belongs to the called model: FSDP reduces gradients at the end.
  void go_to_whole_model(Owner& owner, StackId stack) {
    if (owner.phase == Phase::forward && owner.module.valid()) latest_model_ = facts(stack).outermost;
    if (owner.phase != Phase::backward || owner.module.valid() || !latest_model_.valid()) return;
    owner.module = latest_model_;
    owner.module_confidence = Confidence::estimated;
    if (owner.component == Component::other) owner.component = modules_.paths[latest_model_.value].component;
  }

  // A recomputed forward pass has its own module objects.
  void go_to(Owner& owner, BlockId side) const {
    if (!side.valid()) return;
    owner.forward_stack = store_.blocks.stack[side.value];
    if (owner.phase == Phase::recomputation && owner.module.valid()) return;
    name_module(owner, owner.forward_stack);
    if (owner.module.valid()) owner.module_confidence = Confidence::estimated;
  }

  void take(Owner& owner, const TensorInBlock& found) const {
    owner.category = category_of(store_.definitions.tensors[found.tensor].role);
    owner.category_confidence = Confidence::exact;
    const ModulePathId module = modules_.around(found.modules);
    if (!module.valid()) return;
    owner.module = module;
    owner.module_confidence = Confidence::exact;
    owner.component = modules_.paths[module.value].component;
  }

  const Store& store_;
  const ComponentRules& rules_;
  ModulePaths modules_;
  std::vector<StackFacts> stacks_;
  PhaseRuns runs_;
  ForwardSides forward_sides_;
  std::unordered_map<ThreadId, BlockId> latest_side_;  // by thread of autograd's
  ModulePathId latest_model_;
};

}  // namespace

bool Attribution::has_model_tensor(BlockId block) const {
  return std::ranges::binary_search(tensors, block, {}, &TensorInBlock::block);
}

Attribution attribute_blocks(const Store& store) {
  return attribute_blocks(store, ComponentRules::built_in());
}

Attribution attribute_blocks(const Store& store, const ComponentRules& rules) {
  return Attributor(store, rules).attribute();
}

}  // namespace tidemark
