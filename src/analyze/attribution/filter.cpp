#include "analyze/attribution/filter.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analyze/attribution/groups.h"

namespace tidemark {
namespace {

// By ModulePathId.
std::vector<bool> matching_modules(const Attribution& attribution, const std::string& pattern) {
  std::vector<bool> matching;
  matching.reserve(attribution.modules.size());
  for (const ModulePath& module : attribution.modules) matching.push_back(module_matches(module.path, pattern));
  return matching;
}

}  // namespace

std::string filter_text(const FilterOptions& options) {
  std::string text;
  for (const auto& [name, value] : {std::pair("module", &options.module), std::pair("component", &options.component),
                                    std::pair("category", &options.category), std::pair("phase", &options.phase)}) {
    if (!value->empty()) text += fmt::format("{}{} {}", text.empty() ? "blocks with " : " and ", name, *value);
  }
  return text;
}

bool module_matches(const std::string& path, const std::string& pattern) {
  for (std::size_t begin = 0; begin < path.size(); begin = std::min(path.find('.', begin), path.size() - 1) + 1) {
    for (std::size_t end = begin; end < path.size();) {
      end = std::min(path.find('.', end + 1), path.size());
      if (fnmatch(pattern.c_str(), path.substr(begin, end - begin).c_str(), 0) == 0) return true;
    }
  }
  return false;
}

Result<BlockFilter> choose_blocks(const Store& store, const Attribution& attribution, const FilterOptions& options) {
  if (options.empty()) return BlockFilter();
  const auto component = value_in(kComponentNames, options.component);
  const auto category = value_in(kCategoryNames, options.category);
  const auto phase = value_in(kPhaseNames, options.phase);
  for (const auto& [wanted, kind] :
       {std::pair(!options.module.empty(), OwnerKind::module), std::pair(component.has_value(), OwnerKind::component),
        std::pair(category.has_value(), OwnerKind::category), std::pair(phase.has_value(), OwnerKind::phase)}) {
    if (!wanted) continue;
    if (auto known = check_known(store, attribution, kind); !known) return known.error();
  }
  const std::vector<bool> modules = matching_modules(attribution, options.module);
  if (!options.module.empty() && std::find(modules.begin(), modules.end(), true) == modules.end()) {
    return Error{
        fmt::format("{}: no module matches '{}' (there is for example '{}'; `tidemark table --by module` lists "
                    "those that hold memory)",
                    store.path, options.module, attribution.modules.back().path)};
  }
  std::vector<bool> chosen;
  chosen.reserve(attribution.blocks.size());
  for (const Owner& owner : attribution.blocks) {
    chosen.push_back((options.module.empty() || (owner.module.valid() && modules[owner.module.value])) &&
                     (!component || owner.component == *component) && (!category || owner.category == *category) &&
                     (!phase || owner.phase == *phase));
  }
  return BlockFilter(std::move(chosen));
}

}  // namespace tidemark
