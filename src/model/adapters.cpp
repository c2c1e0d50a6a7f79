#include "model/adapters.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/saturating.h"

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

}  // namespace

std::optional<AdapterFacts> find_adapters(std::span<const StoredTensor> tensors) {
  AdapterCollector collector;
  for (const StoredTensor& tensor : tensors) collector.add(tensor);
  return collector.take();
}

}  // namespace tidemark
