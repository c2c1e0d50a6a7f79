// How much of something is used, along a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tui/canvas.h"

namespace tidemark::tui {

struct BarValue {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
  std::optional<std::uint64_t> peak;  ///< the most that was used; none: not shown
  Role role = Role::used;
};

/// `width` columns from (x, y) on. What is used shows at least a trace; all of it only where nothing is left.
void draw_bar(const Region& region, std::size_t x, std::size_t y, std::size_t width, const BarValue& value);

}  // namespace tidemark::tui
