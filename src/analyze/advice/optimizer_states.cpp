// Gradients and optimizer states of parameters that are not trained, and more than the required state of those that
// are.
#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "allocator/rules.h"
#include "analyze/advice/rules.h"

namespace tidemark::advice {
namespace {

using Role = ModelTensor::Role;
using ParameterKey = std::pair<NnModuleId, StringId>;

/// Parameters that the program reported, with their gradients and optimizer states.
class Parameters {
 public:
  explicit Parameters(const Definitions& definitions) {
    for (const ModelTensor& tensor : definitions.tensors) {
      if (tensor.role == Role::buffer || !tensor.module.valid()) continue;
      Parameter& parameter = parameters_[key(tensor)];
      parameter.said.push_back({tensor.time_ns, tensor.requires_grad});
      if (tensor.role == Role::parameter) parameter.latest = &tensor;
    }
    for (auto& [key, parameter] : parameters_) std::ranges::stable_sort(parameter.said, {}, &Said::time_ns);
  }

  /// Null if the parameter itself was not reported.
  [[nodiscard]] const ModelTensor* parameter_of(const ModelTensor& tensor) const {
    const auto found = parameters_.find(key(tensor));
    return found == parameters_.end() ? nullptr : found->second.latest;
  }

  /// The time from which the parameter of a tensor in a block needs no gradient: after the last report with
  /// requires_grad. nullopt: never while the block is alive.
  [[nodiscard]] std::optional<EarlierFree> frozen(const Store& store, BlockId block, const ModelTensor& tensor) const {
    EarlierFree away = never_there(store, block);
    const auto found = parameters_.find(key(tensor));
    if (found == parameters_.end()) return tensor.requires_grad ? std::nullopt : std::optional(away);
    bool is_frozen = false;
    for (const Said& said : found->second.said) {
      const std::uint64_t change_count = store.changes_until(said.time_ns);
      if (change_count <= away.from) continue;
      if (change_count > away.to) break;
      if (said.requires_grad) {
        (is_frozen ? away.to : away.from) = change_count;
      } else {
        is_frozen = true;
      }
    }
    return is_frozen ? std::optional(away) : std::nullopt;
  }

 private:
  struct Said {
    std::uint64_t time_ns = 0;
    bool requires_grad = false;
  };
  struct Parameter {
    std::vector<Said> said;
    const ModelTensor* latest = nullptr;
  };

  static ParameterKey key(const ModelTensor& tensor) { return {tensor.module, tensor.name}; }

  std::map<ParameterKey, Parameter> parameters_;
};

template <typename Visit>
void visit_tensors(const Subject& subject, Role role, const Visit& visit) {
  for (const TensorInBlock& found : subject.attribution.tensors) {
    const ModelTensor& tensor = subject.store.definitions.tensors[found.tensor];
    if (tensor.role == role && subject.store.blocks.device[found.block.value] == subject.device) {
      visit(found.block, tensor);
    }
  }
}

std::vector<EarlierFree> of_frozen_parameters(const Subject& subject, Role role) {
  const Parameters parameters(subject.store.definitions);
  std::vector<EarlierFree> frees;
  visit_tensors(subject, role, [&](BlockId block, const ModelTensor& tensor) {
    if (const auto away = parameters.frozen(subject.store, block, tensor)) frees.push_back(*away);
  });
  return frees;
}

}  // namespace

std::vector<EarlierFree> frozen_gradients(const Subject& subject) {
  return of_frozen_parameters(subject, Role::gradient);
}

std::vector<EarlierFree> frozen_optimizer_state(const Subject& subject) {
  return of_frozen_parameters(subject, Role::optimizer_state);
}

// Adam, which needs the most state of the common optimizers, needs two tensors like the parameter. Bytes beyond the
// parameter's size (32 bits for 16), and every tensor after the second (amsgrad, copies of the parameters), are a
// choice.
std::vector<EarlierFree> large_optimizer_state(const Subject& subject) {
  constexpr std::size_t kNeeded = 2;
  const Store& store = subject.store;
  const Parameters parameters(store.definitions);
  const bool rounds_up = store.devices[subject.device].device.type != DeviceType::cpu;
  std::map<const ModelTensor*, std::set<StringId>> names;
  std::vector<EarlierFree> frees;
  visit_tensors(subject, Role::optimizer_state, [&](BlockId block, const ModelTensor& state) {
    const ModelTensor* parameter = parameters.parameter_of(state);
    const bool alone = state.bytes == state.storage_bytes;
    if (parameter == nullptr || !parameter->requires_grad || parameter->shape != state.shape || !alone) return;
    EarlierFree away = never_there(store, block);
    std::set<StringId>& of_parameter = names[parameter];
    if (of_parameter.size() < kNeeded) of_parameter.insert(state.state);
    if (of_parameter.contains(state.state)) {
      const std::uint64_t needed = rounds_up ? pytorch::round_to_min_block(parameter->bytes) : parameter->bytes;
      if (store.blocks.size[block.value] <= needed) return;
      away.bytes = store.blocks.size[block.value] - needed;
    }
    frees.push_back(away);
  });
  return frees;
}

// Fused steps have no temporary tensors. Steps for one parameter at a time need those of the largest parameter.
std::vector<EarlierFree> optimizer_temporaries(const Subject& subject) {
  const Blocks& blocks = subject.store.blocks;
  std::map<StackId, std::vector<BlockId>> stacks;
  std::vector<EarlierFree> frees;
  for (const BlockId block : subject.blocks) {
    const Owner& owner = subject.owner(block);
    if (owner.category != Category::temporary) continue;
    if (owner.making == AllocationOrigin::fusable_step) frees.push_back(never_there(subject.store, block));
    if (owner.making == AllocationOrigin::foreach_step) stacks[blocks.stack[block.value]].push_back(block);
  }
  for (const auto& [stack, made] : stacks) {
    const auto size_of = [&](BlockId block) { return blocks.size[block.value]; };
    const std::uint64_t largest = size_of(*std::ranges::max_element(made, {}, size_of));
    std::size_t kept_until = 0;  // the largest one remains, as steps run one at a time
    for (const BlockId block : made) {
      const EarlierFree life = never_there(subject.store, block);
      if (size_of(block) == largest && life.from >= kept_until) {
        kept_until = life.to;
      } else {
        frees.push_back(life);
      }
    }
  }
  return frees;
}

}  // namespace tidemark::advice
