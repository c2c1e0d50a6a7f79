#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "report/columns.h"
#include "report/frame_text.h"
#include "report/printable.h"
#include "report/text.h"
#include "report/text_parts.h"

namespace tidemark {
namespace {

// Bytes a step may be fractions: "51.2 B".
std::string rate_text(double bytes) {
  if (bytes >= 1024) return format_bytes(static_cast<std::uint64_t>(std::llround(bytes)));
  return bytes == std::floor(bytes) ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} B", bytes);
}

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

std::string why_text(const Growth& growth) {
  switch (growth.finding) {
    case GrowthFinding::leak:
      break;
    case GrowthFinding::too_few:
      return fmt::format("grew in {} of {} steps: too few to tell", format_count(growth.grown_steps),
                         format_count(growth.judged_steps));
    case GrowthFinding::stopped:
      return fmt::format("stopped growing, after {} steps", format_count(growth.grown_steps));
    case GrowthFinding::slowing:
      return "grows ever less, as a cache that fills";
    case GrowthFinding::unclear:
      return fmt::format("too early to tell: freed after up to {} steps", format_count(growth.released_after));
    case GrowthFinding::with_work:
      return "grows as the work of a step does";
  }
  return {};
}

std::string growths_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"held at the end", "why it is no leak", "device", "stack"});
  for (const LeakPlace& place : leaks.growths) {
    columns.add({format_bytes(place.held_bytes), why_text(place.growth), to_string(place.device), place_text(place)});
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.growth_count > leaks.growths.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(leaks.growth_count - leaks.growths.size()));
  }
  return text;
}

std::string doubt_text(const Leaks& leaks) {
  switch (leaks.doubt) {
    case LeakDoubt::no_steps:
      return "nothing repeats often enough to tell the steps of a training loop.";
    case LeakDoubt::too_few_steps:
      return fmt::format("{} steps were found; {} are needed with a warm-up of {}.",
                         format_count(leaks.steps.starts.size()),
                         format_count(leaks.warmup_steps + kFewestJudgedSteps + 2), format_count(leaks.warmup_steps));
    case LeakDoubt::none:
    case LeakDoubt::no_events:
      break;
  }
  return "nothing was recorded.";
}

std::string verdict_text(const Leaks& leaks) {
  switch (leaks.verdict) {
    case LeakVerdict::leak:
      return fmt::format("Leak: {} {} by {} a step", format_count(leaks.leak_count),
                         leaks.leak_count == 1 ? "place grows" : "places grow", rate_text(leaks.bytes_per_step));
    case LeakVerdict::no_leak:
      return fmt::format("No leak: nothing kept growing over {} steps", format_count(leaks.judged_steps));
    case LeakVerdict::insufficient_data:
      return "Not enough data: " + doubt_text(leaks);
  }
  return {};
}

std::string beginning_text(const Leaks& leaks) {
  switch (leaks.steps.source) {
    case TrainingSteps::Source::given:
      return "as given";
    case TrainingSteps::Source::annotation:
      return fmt::format("each beginning with '{}'", printable(leaks.mark.value_or("")));
    case TrainingSteps::Source::optimizer:
      return "each beginning where the optimizer first allocates";
    case TrainingSteps::Source::stack:
      return "each beginning at " + stack_text(leaks.anchor);
    case TrainingSteps::Source::sizes:
      return "found from sizes that repeat";
    case TrainingSteps::Source::none:
      break;
  }
  return {};
}

std::string steps_text(const Leaks& leaks) {
  const auto& starts = leaks.steps.starts;
  if (starts.empty()) return {};
  return fmt::format("Steps: {}, from {} to {}, {}; warm-up {}.\n", format_count(starts.size()),
                     format_duration_ns(starts.front().time_ns), format_duration_ns(starts.back().time_ns),
                     beginning_text(leaks), format_count(leaks.warmup_steps));
}

}  // namespace

std::string to_text(const Leaks& leaks, const Terminal& terminal) {
  const Tone tone = leaks.verdict == LeakVerdict::leak ? Tone::warning : Tone::heading;
  std::string text = paint(terminal, tone, verdict_text(leaks)) + "\n";
  if (!leaks.leaks.empty()) text += leaks_table(leaks, terminal);
  text += steps_text(leaks);
  if (!leaks.growths.empty()) {
    text += "\n" + paint(terminal, Tone::heading, "Grew, but is no leak by the criterion") + "\n";
    text += growths_table(leaks, terminal);
  }
  return text + quality_hint(leaks.recording, terminal);
}

}  // namespace tidemark
