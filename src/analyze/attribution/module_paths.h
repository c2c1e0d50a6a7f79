// Modules by name: one path for all objects that have it.
#pragma once

#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "trace/definitions.h"

namespace tidemark {

struct ModulePaths {
  std::vector<ModulePath> paths;        ///< by ModulePathId; their components are set by `rules`
  std::vector<ModulePathId> of_object;  ///< by NnModuleId; invalid: the object has no name

  std::vector<ComponentRules::RuleIndex> rules;  ///< by ModulePathId
  std::vector<NnModuleId> outermost;             ///< of the first object of that name, by ModulePathId

  /// Invalid for an object without a name.
  [[nodiscard]] ModulePathId of(NnModuleId object) const {
    return object.value < of_object.size() ? of_object[object.value] : ModulePathId{};
  }
  /// The innermost module that is or contains all of these; modules without a name are ignored. Invalid if there is
  /// none.
  [[nodiscard]] ModulePathId around(const std::vector<NnModuleId>& objects) const;
};

/// An outermost module's path is the name of its class. If several outermost modules have children, the children's
/// paths begin with the class of the outermost module, because all have a "layers.0".
[[nodiscard]] ModulePaths name_modules(const Definitions& definitions, const ComponentRules& rules);

}  // namespace tidemark
