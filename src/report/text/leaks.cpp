#include <fmt/format.h>

#include "base/units.h"
#include "report/text/columns.h"
#include "report/text/parts.h"
#include "report/text/text.h"
#include "report/words/frame_text.h"
#include "report/words/leak.h"

namespace tidemark {
namespace {

std::string place_text(const LeakPlace& place) {
  std::string text = stack_text_with_callers(place.stack);
  if (place.requested_bytes) text += fmt::format(", {} bytes each", format_count(*place.requested_bytes));
  return text;
}

std::string step_text(std::uint32_t step, std::uint64_t time_ns) {
  return fmt::format("step {} ({})", format_count(step), format_duration_ns(time_ns));
}

std::string leaks_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"a step", "95% interval", "blocks a step", "grew in steps", "first in", "last in", "held at the end",
                   "device", "stack"});
  for (const LeakPlace& place : leaks.leaks) {
    const Growth& growth = place.growth;
    columns.add({rate_text(growth.bytes_per_step.value),
                 fmt::format("{} to {}", rate_text(growth.bytes_per_step.low), rate_text(growth.bytes_per_step.high)),
                 growth.kind == GrowthKind::replaced ? "replaced" : fmt::format("{:.2f}", growth.blocks_per_step),
                 fmt::format("{} of {}", format_count(growth.grown_steps), format_count(growth.judged_steps)),
                 step_text(growth.first_step, place.first_step_ns), step_text(growth.last_step, place.last_step_ns),
                 fmt::format("{} in {}", format_bytes(place.held_bytes), format_count(place.held_blocks)),
                 to_string(place.device), place_text(place)});
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.leak_count > leaks.leaks.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(leaks.leak_count - leaks.leaks.size()));
  }
  return text;
}

std::string growths_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"held at the end", "why it is no leak", "device", "stack"});
  for (const LeakPlace& place : leaks.growths) {
    columns.add(
        {format_bytes(place.held_bytes), growth_finding(place.growth), to_string(place.device), place_text(place)});
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.growth_count > leaks.growths.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(leaks.growth_count - leaks.growths.size()));
  }
  return text;
}

}  // namespace

std::string to_text(const Leaks& leaks, const Terminal& terminal) {
  const Tone tone = leaks.verdict == LeakVerdict::leak ? Tone::warning : Tone::heading;
  std::string text = paint(terminal, tone, leak_verdict(leaks)) + "\n";
  if (!leaks.leaks.empty()) text += leaks_table(leaks, terminal);
  text += leak_steps(leaks);
  if (!leaks.growths.empty()) {
    text += "\n" + paint(terminal, Tone::heading, "Grew, but is no leak by the criterion") + "\n";
    text += growths_table(leaks, terminal);
  }
  return text + quality_hint(leaks.recording, terminal);
}

}  // namespace tidemark
