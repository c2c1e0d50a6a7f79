#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/text/columns.h"
#include "report/text/parts.h"
#include "report/text/text.h"
#include "report/words/leak.h"
#include "report/words/printable.h"
#include "report/words/stack_text.h"

namespace tidemark {
namespace {

// Several stacks of one line have different callers; where the blocks have no stack, their size says which they are.
FittedText fitted_site(const LeakSite& site) {
  return [&site](std::size_t width) {
    std::string more;
    if (site.stack_ids.size() > 1) more += fmt::format(" ({} stacks)", format_count(site.stack_ids.size()));
    if (site.requested_bytes) more += fmt::format(", {} bytes each", format_count(*site.requested_bytes));
    if (more.empty()) return stack_text_with_callers(site.stack, width);
    return stack_text(site.stack, width == 0 ? 0 : width - std::min(width - 1, more.size())) + more;
  };
}

std::string step_text(std::uint32_t step, std::uint64_t time_ns) {
  return fmt::format("step {} ({})", format_count(step), format_duration_ns(time_ns));
}

std::string held_text(const LeakSite& site) {
  return fmt::format("{} in {} blocks at the end; {} to {}", format_bytes(site.held_bytes),
                     format_count(site.held_blocks), step_text(site.growth.first_step, site.first_step_ns),
                     step_text(site.growth.last_step, site.last_step_ns));
}

std::string leaks_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"per step", "95% interval", "blocks per step", "growing steps", "device"});
  for (const LeakSite& site : leaks.leaks) {
    const Growth& growth = site.growth;
    columns.add({rate_text(growth.bytes_per_step.value),
                 fmt::format("{} to {}", rate_text(growth.bytes_per_step.low), rate_text(growth.bytes_per_step.high)),
                 growth.kind == GrowthKind::replaced ? "replaced" : fmt::format("{:.2f}", growth.blocks_per_step),
                 fmt::format("{} of {}", format_count(growth.grown_steps), format_count(growth.analyzed_steps)),
                 to_string(site.device)});
    columns.add_below(fitted_site(site));
    columns.add_below([&site](std::size_t width) { return fit(held_text(site), width); });
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.leak_count > leaks.leaks.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(leaks.leak_count - leaks.leaks.size()));
  }
  return text;
}

std::string growths_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"held at end", "reason", "device", "stack"});
  for (const LeakSite& site : leaks.non_leak_growth) {
    columns.add({format_bytes(site.held_bytes), growth_text(site.growth), to_string(site.device)}, fitted_site(site));
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.non_leak_growth_count > leaks.non_leak_growth.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n",
                        format_count(leaks.non_leak_growth_count - leaks.non_leak_growth.size()));
  }
  return text;
}

}  // namespace

std::string to_text(const Leaks& leaks, const Terminal& terminal) {
  const Tone tone = leaks.verdict == LeakVerdict::leak ? Tone::warning : Tone::heading;
  std::string text = paint(terminal, tone, leak_verdict(leaks)) + "\n";
  if (!leaks.leaks.empty()) text += leaks_table(leaks, terminal);
  if (const std::string small = small_leaks_text(leaks); !small.empty()) text += fmt::format("  ({})\n", small);
  text += leak_steps(leaks);
  if (!leaks.non_leak_growth.empty()) {
    text += "\n" + paint(terminal, Tone::heading, "Growth that is not a leak") + "\n";
    text += growths_table(leaks, terminal);
  }
  return text + quality_hint(leaks.recording, terminal);
}

}  // namespace tidemark
