// Words for attribution, the same in every report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/stack_names.h"

namespace tidemark {

/// "per-sample gradient".
[[nodiscard]] std::string category_text(Category category);

/// Printable: "optimizer state", "model.layers.3.mlp", "step 3", "(no module)".
[[nodiscard]] std::string owner_text(const BlockOwner& owner);

/// "categories": the key of a list in JSON.
[[nodiscard]] const char* plural_of(OwnerKind kind);

/// Names for the rows of a list of holders.
struct HolderWords {
  std::string one;      ///< "call site", "category"
  std::string several;  ///< "call sites", "categories"
};
/// `stack`: member of a row; `usual`: name of rows that are not owners.
template <typename Row>
[[nodiscard]] HolderWords holder_words(const std::vector<Row>& rows, NamedStack Row::*stack, const char* usual) {
  const std::optional<BlockOwner> owner = rows.empty() ? std::nullopt : (rows.front().*stack).owner;
  if (!owner) return {usual, std::string(usual) + "s"};
  return {std::string(name_in(kOwnerKindNames, owner->kind)), plural_of(owner->kind)};
}

}  // namespace tidemark
