// What the frames of each stack tell, worked out once for each node of the tree of stacks.
#pragma once

#include <vector>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "analyze/attribution/module_paths.h"
#include "trace/definitions.h"

namespace tidemark {

struct StackFacts {
  Phase phase = Phase::other;
  Phase phase_in_node = Phase::backward;  ///< of a block that an autograd node allocates
  AllocationOrigin making = AllocationOrigin::nothing_known;
  bool in_backward_hook = false;  ///< of a module: what it does when its input's gradient is known
  ModulePathId module;            ///< the innermost one that has a name
  ModulePathId outermost;
  /// The lowest of the module's and of the frames' that it called; of all frames where no module has a name.
  ComponentRules::RuleIndex component = ComponentRules::kNoRule;
};

/// By StackId.
[[nodiscard]] std::vector<StackFacts> read_stacks(const Definitions& definitions, const ModulePaths& modules,
                                                  const ComponentRules& rules);

}  // namespace tidemark
