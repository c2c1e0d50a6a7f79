// Drawings shared by several views.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tui/view.h"

namespace tidemark::tui {

// Columns: there is room for peaks and longer names.
inline constexpr std::size_t kWide = 100;

/// "n/a" if the value is unknown.
template <typename T>
[[nodiscard]] std::string known_text(fmt::format_string<const T&> format, const std::optional<T>& value) {
  return value ? fmt::format(format, *value) : std::string("n/a");
}
[[nodiscard]] std::string size_text(const std::optional<std::uint64_t>& bytes);

[[nodiscard]] Role role_of(RiskLevel level);

/// "waiting for …" or another message while there is nothing to show yet. Returns whether there is something to show.
bool draw_waiting(const Region& region, const MachineState& machine);

/// One row: a bar, used and total memory, and the peak.
void draw_memory(const Region& region, std::optional<std::uint64_t> used, std::optional<std::uint64_t> total,
                 const WatchedUsage* history, RiskLevel level);

/// A line along the row, with a title in it.
void draw_rule(const Region& region, std::size_t y, std::string_view title);

/// The risk, and advice from its evidence. Returns the number of rows.
std::size_t draw_risk(const Region& region, const RiskAssessment& risk, bool assessed,
                      const std::string& recommendation);

/// `text`, printable, in lines of the region's width from row `y` on. The row behind it.
std::size_t draw_paragraph(const Region& region, std::size_t y, std::string_view text, Role role = Role::plain);

}  // namespace tidemark::tui
