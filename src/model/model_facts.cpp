#include "model/model_facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/arithmetic.h"
#include "model/names.h"

namespace tidemark {

namespace {

enum class Part : unsigned char { a, b, other };

struct AdapterName {
  std::string module;
  std::string adapter;
  Part part = Part::other;
};

constexpr std::pair<std::string_view, Part> kParts[] = {
    {"lora_A", Part::a},
    {"lora_B", Part::b},
    {"lora_embedding_A", Part::a},
    {"lora_embedding_B", Part::b},
    {"lora_magnitude_vector", Part::other},
};

/// MODULE.lora_A.ADAPTER.weight (a PEFT model's state), MODULE.lora_A.weight (an adapter's file), MODULE.lora_A.
std::optional<AdapterName> adapter_name(std::string_view name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    const auto* const known =
        std::find_if(std::begin(kParts), std::end(kParts), [word](const auto& part) { return part.first == word; });
    if (known != std::end(kParts)) {
      std::string_view rest = name.substr(std::min(end + 1, name.size()));
      for (const std::string_view last : {"weight", "bias"}) {
        if (rest == last) rest = {};
        if (rest.size() > last.size() && rest.ends_with(last) && rest[rest.size() - last.size() - 1] == '.') {
          rest.remove_suffix(last.size() + 1);
        }
      }
      return AdapterName{std::string(name.substr(0, begin == 0 ? 0 : begin - 1)), std::string(rest), known->second};
    }
    begin = end + 1;
  }
  return std::nullopt;
}

/// Facts that grow tensor by tensor.
class AdapterCollector {
 public:
  void add(const StoredTensor& tensor) {
    const auto name = adapter_name(tensor.name);
    if (!name) {
      facts_.base_parameters = saturating_add(facts_.base_parameters, tensor.elements);
      facts_.base_bytes = saturating_add(facts_.base_bytes, tensor.bytes);
      base_.emplace(tensor.name, tensor.elements);
      return;
    }
    const auto [known, is_new] = numbers_.try_emplace({name->module, name->adapter}, facts_.modules.size());
    if (is_new) {
      facts_.modules.push_back({name->module, name->adapter, {}, false, 0, 0, {}});
      parts_.push_back(0);
    }
    AdaptedModule& module = facts_.modules[known->second];
    module.parameters = saturating_add(module.parameters, tensor.elements);
    module.bytes = saturating_add(module.bytes, tensor.bytes);
    facts_.parameters = saturating_add(facts_.parameters, tensor.elements);
    facts_.bytes = saturating_add(facts_.bytes, tensor.bytes);
    if (name->part == Part::a && !tensor.shape.empty()) module.rank = tensor.shape.front();
    parts_[known->second] |= name->part == Part::a ? 1U : name->part == Part::b ? 2U : 0U;
  }

  std::optional<AdapterFacts> take() {
    if (facts_.modules.empty()) return std::nullopt;
    std::set<std::string> counted;
    for (std::size_t number = 0; number < facts_.modules.size(); ++number) {
      AdaptedModule& module = facts_.modules[number];
      module.has_both = parts_[number] == 3U;
      for (const char* const weight : {".base_layer.weight", ".weight"}) {
        const auto base = base_.find(module.module + weight);
        if (base != base_.end() && !module.base_parameters) module.base_parameters = base->second;
      }
      if (module.rank) {
        std::uint64_t& bytes = facts_.bytes_by_rank[*module.rank];
        bytes = saturating_add(bytes, module.bytes);
      }
      if (counted.insert(module.module).second) {
        ++facts_.target_modules[module.module.substr(module.module.rfind('.') + 1)];
      }
    }
    return std::move(facts_);
  }

 private:
  AdapterFacts facts_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;  // facts_.modules
  std::vector<unsigned> parts_;                                         // 1: has A, 2: has B
  std::unordered_map<std::string, std::uint64_t> base_;
};

// nullopt if no name is an adapter's.
std::optional<AdapterFacts> find_adapters(std::span<const StoredTensor> tensors) {
  AdapterCollector collector;
  for (const StoredTensor& tensor : tensors) collector.add(tensor);
  return collector.take();
}

/// Groups in the order of their first names.
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
