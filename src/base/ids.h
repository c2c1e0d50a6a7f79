// Strong index types: a StackId cannot be passed as a ThreadId, and both stay 32-bit integers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace tidemark {

/// A dense index into the table that `Tag` names. Default-constructed it is invalid ("none").
template <typename Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t value = kNone;

  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;
};

using StringId = Id<struct StringTag>;              ///< into Definitions::strings
using LocationId = Id<struct LocationTag>;          ///< into Definitions::locations
using StackId = Id<struct StackTag>;                ///< into Definitions::stacks; invalid = unknown stack
using ThreadId = Id<struct ThreadTag>;              ///< into Definitions::threads
using ModuleId = Id<struct ModuleTag>;              ///< into Definitions::modules
using NnModuleId = Id<struct NnModuleTag>;          ///< into Definitions::nn_modules
using AutogradNodeId = Id<struct AutogradNodeTag>;  ///< into Definitions::autograd_nodes

}  // namespace tidemark

template <typename Tag>
struct std::hash<tidemark::Id<Tag>> {
  std::size_t operator()(tidemark::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value); }
};
