// A recording with attribution in its stacks, so that everything that shows stacks shows it.
#pragma once

#include <memory>
#include <string_view>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct AttributedStore : Store {
  std::shared_ptr<const Attribution> attribution;  ///< null if the recording has no data for it
};

/// Whether the recording contains modules and tensors of the program, or autograd nodes.
[[nodiscard]] bool has_attribution(const Definitions& definitions);

/// Attributes the blocks if has_attribution(). Then a frame that calls a module has the module's path as its function,
/// and no file; modules of one path are one, whichever objects they are. The stack of an allocation by an autograd node
/// is the code that ran the node, kBackwardFrame, and the stack of the node's forward side or, if unknown, its module
/// and the class of the node. Overview::stacks_at_peak is updated.
[[nodiscard]] AttributedStore attribute(Store store, const ComponentRules& rules = ComponentRules::built_in());
/// The same with the attribution of this store.
[[nodiscard]] AttributedStore attribute(Store store, Attribution attribution);

}  // namespace tidemark
