#include "tui/views/parts.h"

#include <algorithm>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/risks.h"
#include "tui/canvas.h"
#include "tui/chart.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kMemoryText = 50;  // columns behind a bar

}  // namespace

std::string size_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : std::string("n/a");
}

Role role_of(RiskLevel level) {
  if (level == RiskLevel::critical) return Role::critical;
  if (level == RiskLevel::high) return Role::high;
  return level == RiskLevel::medium ? Role::warning : Role::good;
}

bool draw_waiting(const Region& region, const MachineState& machine) {
  if (machine.devices_known) return true;
  draw_paragraph(region, 0, "Waiting for the GPU driver…", Role::quiet);
  return false;
}

void draw_memory(const Region& region, std::optional<std::uint64_t> used, std::optional<std::uint64_t> total,
                 const WatchedUsage* history, RiskLevel level) {
  const std::size_t room = region.width() > kMemoryText + 8 ? region.width() - kMemoryText : 8;
  const bool peaked = history != nullptr && !history->empty();
  if (used && total) {
    draw_bar(region, 0, 0, room,
             {.used = *used,
              .total = *total,
              .peak = peaked ? std::optional(history->peak_bytes()) : std::nullopt,
              .role = level == RiskLevel::low ? Role::used : role_of(level)});
  }
  const std::string percent =
      used && total && *total != 0
          ? fmt::format("{:5.1f}%", 100.0 * static_cast<double>(*used) / static_cast<double>(*total))
          : std::string();
  region.print(room + 2, 0, fmt::format("{:>10} of {:>10} {:>7}", size_text(used), size_text(total), percent));
  if (peaked) region.print_right(region.width(), 0, "peak " + format_bytes(history->peak_bytes()), {Role::quiet});
}

void draw_rule(const Region& region, std::size_t y, std::string_view title) {
  const char* rule = glyphs_of(region).rule;
  for (std::size_t x = 0; x < region.width(); ++x) region.print(x, y, rule, Role::quiet);
  if (!title.empty()) region.print(2, y, fmt::format(" {} ", fit(title, region.width() - 6)), Role::heading);
}

std::size_t draw_risk(const Region& region, const RiskAssessment& risk, bool assessed,
                      const std::string& recommendation) {
  std::size_t x = region.print(0, 0, "risk: ");
  if (assessed) {
    x = region.print(x, 0, name_of(risk.level), role_of(risk.level));
    region.print(x, 0, confidence_text(risk));
  } else {
    region.print(x, 0, "n/a", Role::quiet);
  }
  return draw_paragraph(region, 1, printable(recommendation));
}

std::size_t draw_paragraph(const Region& region, std::size_t y, std::string_view text, Role role) {
  std::size_t x = 0;
  while (!text.empty()) {
    const std::size_t bytes = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, bytes);
    text.remove_prefix(std::min(bytes + 1, text.size()));
    const std::size_t columns = display_width(word);
    if (x != 0 && x + 1 + columns > region.width()) {
      x = 0;
      ++y;
    }
    x = region.print(x == 0 ? 0 : x + 1, y, word, role);
  }
  return y + 1;
}

}  // namespace tidemark::tui
