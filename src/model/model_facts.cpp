#include "model/model_facts.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/saturating.h"
#include "model/adapters.h"
#include "model/names.h"

namespace tidemark {
namespace {

/// Groups in the order in which their names come up.
class Grouping {
 public:
  void add(const std::string& name, const StoredTensor& tensor) {
    const auto [known, is_new] = numbers_.try_emplace(name, groups_.size());
    if (is_new) groups_.push_back({name, 0, 0, 0});
    groups_[known->second].add(tensor);
  }
  std::vector<TensorGroup> take() { return std::move(groups_); }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<TensorGroup> groups_;
};

/// "model.layers." and 3 of "model.layers.3".
std::optional<std::pair<std::string_view, unsigned long>> numbered(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
  const std::string_view number = std::string_view(name).substr(begin);
  if (!is_number_part(number) || number.size() > 9) return std::nullopt;
  return std::pair(std::string_view(name).substr(0, begin), std::stoul(std::string(number)));
}

bool follows(const RepeatedBlocks& blocks, const TensorGroup& layer) {
  const auto last = numbered(blocks.last);
  const auto next = numbered(layer.name);
  return last && next && last->first == next->first && last->second + 1 == next->second &&
         blocks.parameters == layer.parameters && blocks.bytes == layer.bytes;
}

std::vector<RepeatedBlocks> repeated_blocks(const std::vector<TensorGroup>& layers) {
  std::vector<RepeatedBlocks> found;
  for (const TensorGroup& layer : layers) {
    if (!found.empty() && follows(found.back(), layer)) {
      found.back().last = layer.name;
      ++found.back().count;
    } else {
      found.push_back({layer.name, layer.name, 1, layer.parameters, layer.bytes});
    }
  }
  std::erase_if(found, [](const RepeatedBlocks& blocks) { return blocks.count < 2; });
  return found;
}

/// The module and all that it is in: "a.b" and "a" of "a.b".
void add_to_modules(Grouping& modules, const std::string& module, const StoredTensor& tensor) {
  for (std::size_t end = 0; end < module.size();) {
    end = std::min(module.find('.', end + 1), module.size());
    modules.add(module.substr(0, end), tensor);
  }
}

}  // namespace

void TensorGroup::add(const StoredTensor& tensor) {
  ++tensor_count;
  parameters = saturating_add(parameters, tensor.elements);
  bytes = saturating_add(bytes, tensor.bytes);
}

ModelFacts describe_model(Checkpoint checkpoint, std::uint64_t oversized_bytes) {
  ModelFacts facts;
  facts.oversized_bytes = oversized_bytes;
  Grouping modules;
  Grouping layers;
  Grouping dtypes;
  Grouping shapes;
  const std::vector<StoredTensor>& tensors = checkpoint.tensors;
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    const StoredTensor& tensor = tensors[number];
    const std::string module = module_of(tensor.name);
    facts.total.add(tensor);
    add_to_modules(modules, module, tensor);
    layers.add(layer_of_module(module), tensor);
    dtypes.add(tensor.dtype, tensor);
    shapes.add(shape_text(tensor.shape), tensor);
    if (tensor.bytes >= oversized_bytes) facts.oversized.push_back(number);
  }
  std::stable_sort(facts.oversized.begin(), facts.oversized.end(), [&tensors](std::size_t left, std::size_t right) {
    return tensors[left].bytes > tensors[right].bytes;
  });
  facts.modules = modules.take();
  facts.layers = layers.take();
  facts.dtypes = dtypes.take();
  facts.shapes = shapes.take();
  facts.blocks = repeated_blocks(facts.layers);
  facts.adapters = find_adapters(tensors);
  facts.checkpoint = std::move(checkpoint);
  return facts;
}

}  // namespace tidemark
