// The colours of categories.
#pragma once

#include <cstddef>
#include <optional>

#include "analyze/attribution/attribution.h"
#include "report/plot/palette.h"

namespace tidemark {

[[nodiscard]] constexpr Role category_role(std::optional<Category> category) {
  const Category of = category.value_or(Category::unknown);
  return static_cast<Role>(static_cast<std::size_t>(Role::parameters) + static_cast<std::size_t>(of));
}
static_assert(category_role(Category::activation) == Role::activations);
static_assert(category_role(Category::unknown) == Role::unknown_category);

}  // namespace tidemark
