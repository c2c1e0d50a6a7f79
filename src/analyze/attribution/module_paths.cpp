#include "analyze/attribution/module_paths.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tidemark {
namespace {

// Attributes in which wrappers keep the module that they stand for.
constexpr std::array<std::string_view, 3> kWrapperParts = {"_orig_mod", "_fsdp_wrapped_module",
                                                           "_checkpoint_wrapped_module"};

// The modules of these are their only child "module".
constexpr std::array<std::string_view, 3> kWrapperClasses = {"torch.nn.parallel.distributed.DistributedDataParallel",
                                                             "torch.nn.parallel.data_parallel.DataParallel",
                                                             "opacus.grad_sample.grad_sample_module.GradSampleModule"};

std::string_view text(const Definitions& definitions, StringId id) {
  return id.value < definitions.strings.size() ? std::string_view(definitions.strings[id.value]) : std::string_view();
}

// "transformers.models.llama.modeling_llama.LlamaModel" → "LlamaModel".
std::string_view class_name(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

template <std::size_t Count>
bool contains(const std::array<std::string_view, Count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "_orig_mod.layers.0" → "layers.0"; below a wrapper "module.layers.0" → "layers.0".
std::string without_wrappers(std::string_view path, bool below_wrapper) {
  std::string kept;
  bool first = below_wrapper;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (contains(kWrapperParts, part)) continue;
    const bool wrapped = std::exchange(first, false) && part == "module";
    if (wrapped) continue;
    if (!kept.empty()) kept += '.';
    kept += part;
  }
  return kept;
}

// The latest name of each object.
std::vector<const NnModuleName*> latest_names(const Definitions& definitions) {
  std::vector<const NnModuleName*> names(definitions.nn_modules.size());
  for (const NnModuleName& name : definitions.nn_module_names) {
    if (name.module.value < names.size()) names[name.module.value] = &name;
  }
  return names;
}

}  // namespace

ModulePaths name_modules(const Definitions& definitions) {
  const std::vector<const NnModuleName*> names = latest_names(definitions);
  const auto type_of = [&](NnModuleId object) {
    const NnModuleName* name = object.value < names.size() ? names[object.value] : nullptr;
    return name == nullptr ? std::string_view() : text(definitions, name->type);
  };
  std::unordered_set<std::string_view> roots;  // classes of outermost modules with others below them
  for (const NnModuleName* name : names) {
    if (name != nullptr && name->root != name->module) roots.insert(type_of(name->root));
  }
  ModulePaths modules;
  modules.of_object.resize(names.size());
  std::unordered_map<std::string, ModulePathId> known;
  for (std::size_t object = 0; object < names.size(); ++object) {
    if (names[object] == nullptr) continue;
    const NnModuleName& name = *names[object];
    const std::string_view type = text(definitions, name.type);
    const std::string_view root = type_of(name.root);
    std::string path = without_wrappers(text(definitions, name.path), contains(kWrapperClasses, root));
    if (path.empty()) {
      path = class_name(type);
    } else if (roots.size() > 1 && !root.empty()) {
      path = std::string(class_name(root)) + '.' + path;
    }
    const auto [entry, is_new] =
        known.try_emplace(path, ModulePathId{static_cast<std::uint32_t>(modules.paths.size())});
    if (is_new) modules.paths.push_back({path, std::string(type), Component::other});
    modules.of_object[object] = entry->second;
  }
  return modules;
}

}  // namespace tidemark
