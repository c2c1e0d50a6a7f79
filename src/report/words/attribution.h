// What attribution tells, in words: the same in every report.
#pragma once

#include <string>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"

namespace tidemark {

/// "per-sample gradient".
[[nodiscard]] std::string category_text(Category category);

/// Printable: "optimizer state", "model.layers.3.mlp", "step 3", "(no module)".
[[nodiscard]] std::string owner_text(const BlockOwner& owner);

/// "categories": the key of a list in JSON.
[[nodiscard]] const char* plural_of(OwnerKind kind);

}  // namespace tidemark
