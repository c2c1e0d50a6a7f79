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

// Classes of modules by where they are.
class Classes {
 public:
  Classes(const Definitions& definitions, const std::vector<const NnModuleName*>& names) {
    for (const NnModuleName* name : names) {
      if (name != nullptr) types_[key(name->root, text(definitions, name->path))] = text(definitions, name->type);
    }
  }

  // Those that a module is in, from the nearest to the outermost.
  std::vector<std::string> around(NnModuleId root, std::string_view path) const {
    std::vector<std::string> types;
    while (!path.empty()) {
      const std::size_t dot = path.rfind('.');
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      if (const auto found = types_.find(key(root, path)); found != types_.end()) types.emplace_back(found->second);
    }
    return types;
  }

 private:
  static std::string key(NnModuleId root, std::string_view path) {
    return std::to_string(root.value) + '.' + std::string(path);
  }

  std::unordered_map<std::string, std::string_view> types_;
};

}  // namespace

ModulePaths name_modules(const Definitions& definitions, const ComponentRules& rules) {
  const std::vector<const NnModuleName*> names = latest_names(definitions);
  const Classes classes(definitions, names);
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
    const ModuleDescription description = {path, std::string(type),
                                           classes.around(name.root, text(definitions, name.path))};
    if (path.empty()) {
      path = class_name(type);
    } else if (roots.size() > 1 && !root.empty()) {
      path.insert(0, 1, '.').insert(0, class_name(root));
    }
    const auto [entry, is_new] =
        known.try_emplace(path, ModulePathId{static_cast<std::uint32_t>(modules.paths.size())});
    modules.of_object[object] = entry->second;
    if (!is_new) continue;
    modules.rules.push_back(rules.for_module(description));
    modules.paths.push_back({path, std::string(type), rules.component(modules.rules.back())});
  }
  return modules;
}

}  // namespace tidemark
