// A recording whose stacks say what attribution knows: everything that shows stacks shows it.
#pragma once

#include <memory>
#include <string_view>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct AttributedStore : Store {
  std::shared_ptr<const Attribution> attribution;  ///< null where the recording has no data of its own for it
};

/// Whether the program was asked for its modules and tensors, or its autograd nodes were seen.
[[nodiscard]] bool has_attribution(const Definitions& definitions);

/// Attributes the blocks, where has_attribution(). Then a frame that calls a module has the module's path as its
/// function, and no file; modules of one path are one, whichever objects they are. The stack of what an autograd node
/// allocated is what ran the node, kBackwardFrame, and the stack of the node's forward side; without that its module
/// and the class of the node. Overview::stacks_at_peak follows.
[[nodiscard]] AttributedStore attribute(Store store, const ComponentRules& rules = ComponentRules::built_in());
/// The same with the attribution of this store.
[[nodiscard]] AttributedStore attribute(Store store, Attribution attribution);

}  // namespace tidemark
