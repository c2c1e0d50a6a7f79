#include "analyze/attribution/module_paths.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tidemark {
namespace {

// Attributes in which wrappers keep the wrapped module.
constexpr std::array<std::string_view, 3> kWrapperParts = {"_orig_mod", "_fsdp_wrapped_module",
                                                           "_checkpoint_wrapped_module"};

// Prefix of the class names of wrappers with a single child, the wrapped module, and the child's attribute.
struct Wrapper {
  std::string_view type;
  std::string_view part;
};
constexpr std::array kWrappers = {
    Wrapper{"torch.nn.parallel.distributed.DistributedDataParallel", "module"},
    Wrapper{"torch.nn.parallel.data_parallel.DataParallel", "module"},
    Wrapper{"opacus.distributed.DifferentiallyPrivateDistributedDataParallel", "module"},
    Wrapper{"opacus.grad_sample.", "_module"},
};

// "transformers.models.llama.modeling_llama.LlamaModel" → "LlamaModel".
std::string_view class_name(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

// The attribute in which an outermost module of this class keeps its model; empty for other classes.
std::string_view wrapper_part(std::string_view type) {
  const auto* const found = std::find_if(kWrappers.begin(), kWrappers.end(),
                                         [&](const Wrapper& wrapper) { return type.starts_with(wrapper.type); });
  return found == kWrappers.end() ? std::string_view() : found->part;
}

// "_orig_mod.layers.0" → "layers.0"; below a wrapper with `first` "module", "module.layers.0" → "layers.0".
std::string without_wrappers(std::string_view path, std::string_view first) {
  std::string kept;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (std::find(kWrapperParts.begin(), kWrapperParts.end(), part) != kWrapperParts.end()) continue;
    const std::string_view wrapped = std::exchange(first, std::string_view());
    if (part == wrapped) continue;
    if (!kept.empty()) kept += '.';
    kept += part;
  }
  return kept;
}

std::string_view without_last_part(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// "layers.1.norm", "layers.11" → "layers".
std::string_view shared_parts(std::string_view one, std::string_view other) {
  while (!one.empty() && one != other && !(other.starts_with(one) && other[one.size()] == '.')) {
    one = without_last_part(one);
  }
  return one;
}

// The latest name of each object.
std::vector<const NnModuleName*> latest_names(const Definitions& definitions) {
  std::vector<const NnModuleName*> names(definitions.nn_modules.size());
  for (const NnModuleName& name : definitions.nn_module_names) {
    if (name.module.value < names.size()) names[name.module.value] = &name;
  }
  return names;
}

// Classes of modules by path.
class Classes {
 public:
  Classes(const Definitions& definitions, const std::vector<const NnModuleName*>& names) {
    for (const NnModuleName* name : names) {
      if (name != nullptr) types_[key(name->root, definitions.text(name->path))] = definitions.text(name->type);
    }
  }

  // The modules that contain this one, from the nearest to the outermost.
  std::vector<std::string> around(NnModuleId root, std::string_view path) const {
    std::vector<std::string> types;
    while (!path.empty()) {
      path = without_last_part(path);
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
    return name == nullptr ? std::string_view() : definitions.text(name->type);
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
    const std::string_view type = definitions.text(name.type);
    const std::string_view root = type_of(name.root);
    std::string path = without_wrappers(definitions.text(name.path), wrapper_part(root));
    const ModuleDescription description = {path, std::string(type),
                                           classes.around(name.root, definitions.text(name.path))};
    if (path.empty()) {
      path = class_name(type);
    } else if (roots.size() > 1 && !root.empty()) {
      path.insert(0, 1, '.').insert(0, class_name(root));
    }
    const auto [entry, is_new] =
        known.try_emplace(path, ModulePathId{static_cast<std::uint32_t>(modules.paths.size())});
    modules.of_object[object] = entry->second;
    if (!is_new) continue;
    modules.outermost.push_back(name.root);
    modules.rules.push_back(rules.for_module(description));
    modules.paths.push_back({path, std::string(type), rules.component(modules.rules.back())});
  }
  return modules;
}

ModulePathId ModulePaths::around(const std::vector<NnModuleId>& objects) const {
  std::optional<std::string_view> shared;  // beginning of their paths
  NnModuleId root;
  bool one_root = true;
  for (const NnModuleId object : objects) {
    const ModulePathId module = of(object);
    if (!module.valid()) continue;
    const std::string_view path = paths[module.value].path;
    one_root = one_root && (!shared || outermost[module.value] == root);
    root = outermost[module.value];
    shared = shared ? shared_parts(*shared, path) : path;
  }
  for (; shared && !shared->empty(); shared = without_last_part(*shared)) {
    const auto found =
        std::find_if(paths.begin(), paths.end(), [&](const ModulePath& module) { return module.path == *shared; });
    if (found != paths.end()) return ModulePathId{static_cast<std::uint32_t>(found - paths.begin())};
  }
  return shared && one_root ? of(root) : ModulePathId{};
}

}  // namespace tidemark
