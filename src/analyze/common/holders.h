// Options of lists of memory holders: which blocks count, and what each row is.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/stack_names.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// Default: the stacks of all blocks. Cheap to copy.
class Holders {
 public:
  Holders() = default;
  explicit Holders(BlockFilter filter) : filter_(std::move(filter)) {}
  /// Rows are owners of the selected blocks. `attribution`: source of the groups.
  Holders(BlockFilter filter, OwnerGroups groups, std::shared_ptr<const Attribution> attribution)
      : filter_(std::move(filter)),
        attribution_(std::move(attribution)),
        groups_(std::make_shared<const OwnerGroups>(std::move(groups))) {}

  /// Whether all blocks are selected.
  [[nodiscard]] bool all() const { return filter_.all(); }
  [[nodiscard]] bool by_owner() const { return groups_ != nullptr; }
  [[nodiscard]] bool is_default() const { return all() && !by_owner(); }
  [[nodiscard]] bool lists(std::size_t block) const { return filter_(block); }

  /// The row that a block belongs to: its stack, or the number of a group in place of one.
  [[nodiscard]] StackId of(const Store& store, std::size_t block) const {
    return groups_ ? StackId{groups_->of(block)} : store.blocks.stack[block];
  }
  [[nodiscard]] NamedStack name(Symbols& symbols, StackId row) const {
    if (!groups_) return name_stack(symbols, row);
    NamedStack named;
    named.owner = groups_->owner(row.value);
    return named;
  }

 private:
  BlockFilter filter_;
  std::shared_ptr<const Attribution> attribution_;
  std::shared_ptr<const OwnerGroups> groups_;  // null: stacks
};

/// All blocks by category; nullopt if no category is known.
[[nodiscard]] inline std::optional<Holders> holders_by_category(const Store& store,
                                                                std::shared_ptr<const Attribution> attribution) {
  auto groups = OwnerGroups::create(store, *attribution, OwnerKind::category);
  if (!groups) return std::nullopt;
  return Holders({}, std::move(*groups), std::move(attribution));
}

}  // namespace tidemark
