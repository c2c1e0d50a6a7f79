// Groups blocks by their attribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct CodeLines {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::string> names;  ///< "(train.py:24)", or with the called function: "(train.py:24: cross_entropy)"
  std::vector<std::uint32_t> of_block;  ///< by BlockId; kNone: has a module, belongs to no pass, or the line is unknown
};

/// For blocks of forward and backward passes without a module: the innermost line of the program in their stack, or in
/// the stack of their forward side.
[[nodiscard]] CodeLines code_lines_of_blocks(const Store& store, const Attribution& attribution);

/// Criterion for grouping blocks.
enum class OwnerKind : std::uint8_t {
  category,
  component,
  layer,   ///< the module up to the first number in its path: "model.layers.3"
  module,  ///< the innermost one
  phase,
  step,  ///< training step of the allocation, numbered as in `leaks`
};
inline constexpr EnumName<OwnerKind> kOwnerKindNames[] = {
    {OwnerKind::category, "category"}, {OwnerKind::component, "component"}, {OwnerKind::layer, "layer"},
    {OwnerKind::module, "module"},     {OwnerKind::phase, "phase"},         {OwnerKind::step, "step"}};

/// A group. Without a name: blocks of no module, or from before the first step. Allocations of code outside of all
/// modules for a forward pass (a loss), and of its backward pass, are named by the program's line: "(train.py:24:
/// cross_entropy)".
struct BlockOwner {
  OwnerKind kind = OwnerKind::category;
  std::optional<std::string> name;

  friend bool operator==(const BlockOwner&, const BlockOwner&) = default;
};

/// The part of a module's path that names a layer.
[[nodiscard]] std::string layer_of(const std::string& path);

/// One name for modules with paths that differ in one layer number, "model.layers.{0-15}.mlp", or in several,
/// "blocks.*.*". nullopt if the paths differ in anything else.
[[nodiscard]] std::optional<std::string> common_module_path(const std::vector<std::string>& paths);

/// The groups of all blocks, as numbers. The store and the attribution must outlive it.
class OwnerGroups {
 public:
  /// Fails, with advice on how to record it, if the recording has no data of this kind.
  static Result<OwnerGroups> create(const Store& store, const Attribution& attribution, OwnerKind kind);

  [[nodiscard]] std::uint32_t of(std::size_t block) const;
  [[nodiscard]] BlockOwner owner(std::uint32_t group) const;

 private:
  OwnerGroups(const Attribution& attribution, OwnerKind kind) : attribution_(&attribution), kind_(kind) {}
  [[nodiscard]] std::size_t names_before_lines() const;

  const Attribution* attribution_;
  OwnerKind kind_;
  std::vector<std::uint32_t> layer_of_module_;  // by ModulePathId
  std::vector<std::string> layers_;
  CodeLines lines_;                           // numbered after modules and layers
  std::vector<std::uint32_t> step_of_block_;  // from 1; 0 = before the first
};

/// Fails, with advice on how to record it, if no block has the named owner.
[[nodiscard]] Result<void> check_known(const Store& store, const Attribution& attribution, OwnerKind kind);

}  // namespace tidemark
