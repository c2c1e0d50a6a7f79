#include "tui/bar.h"

#include <algorithm>
#include <cmath>

#include "tui/glyphs.h"

namespace tidemark::tui {
namespace {

// Of `width` columns, how many a share takes.
std::size_t columns_of(std::uint64_t part, std::uint64_t total, std::size_t width) {
  if (total == 0 || part == 0) return 0;
  if (part >= total) return width;
  const double share = static_cast<double>(part) / static_cast<double>(total);
  const auto columns = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
  return std::clamp<std::size_t>(columns, 1, std::max<std::size_t>(width, 2) - 1);
}

}  // namespace

void draw_bar(const Region& region, std::size_t x, std::size_t y, std::size_t width, const BarValue& value) {
  const Glyphs& glyphs = glyphs_of(region);
  const std::size_t used = columns_of(value.used, value.total, width);
  for (std::size_t column = 0; column < width; ++column) {
    const bool filled = column < used;
    region.print(x + column, y, filled ? glyphs.full : glyphs.room, filled ? value.role : Role::room);
  }
  if (!value.peak || *value.peak <= value.used) return;
  const std::size_t peak = columns_of(*value.peak, value.total, width);
  if (peak > used) region.print(x + peak - 1, y, "|", Role::peak);
}

}  // namespace tidemark::tui
