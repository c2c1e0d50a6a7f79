#include "analyze/attribution/attribution.h"

#include "analyze/attribution/model_tensors.h"
#include "analyze/attribution/module_paths.h"
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

Owner owner_by_stack(const std::vector<StackFacts>& stacks, StackId stack, bool in_node) {
  const StackFacts facts = stack.value < stacks.size() ? stacks[stack.value] : StackFacts{};
  Owner owner;
  owner.phase = in_node ? facts.phase_in_node : facts.phase;
  owner.module = facts.module;
  if (owner.module.valid()) owner.module_known = KnownAs::exact;
  return owner;
}

}  // namespace

Attribution attribute_blocks(const Store& store) {
  ModulePaths modules = name_modules(store.definitions);
  const std::vector<StackFacts> stacks = read_stacks(store.definitions, modules);
  const Blocks& blocks = store.blocks;

  Attribution attribution;
  attribution.blocks.reserve(blocks.count());
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    const bool in_node = !blocks.node.empty() && blocks.node[block].valid();
    attribution.blocks.push_back(owner_by_stack(stacks, blocks.stack[block], in_node));
  }
  for (const OutOfMemory& request : store.out_of_memory) {
    attribution.out_of_memory.push_back(owner_by_stack(stacks, request.stack, request.node.valid()));
  }
  attribution.tensors = find_model_tensors(store);
  for (const TensorInBlock& found : attribution.tensors) {
    const ModelTensor& tensor = store.definitions.tensors[found.tensor];
    Owner& owner = attribution.blocks[found.block.value];
    owner.category = category_of(tensor.role);
    owner.category_known = KnownAs::exact;
    owner.module = modules.of(tensor.module);
    owner.module_known = owner.module.valid() ? KnownAs::exact : KnownAs::unknown;
  }
  attribution.modules = std::move(modules.paths);
  return attribution;
}

}  // namespace tidemark
