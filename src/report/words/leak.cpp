#include "report/words/leak.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "report/words/frame_text.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

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

}  // namespace

std::string rate_text(double bytes) {
  if (bytes >= 1024) return format_bytes(static_cast<std::uint64_t>(std::llround(bytes)));
  return bytes == std::floor(bytes) ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} B", bytes);
}

std::string growth_finding(const Growth& growth) {
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

std::string leak_verdict(const Leaks& leaks) {
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

std::string leak_steps(const Leaks& leaks) {
  const auto& starts = leaks.steps.starts;
  if (starts.empty()) return {};
  return fmt::format("Steps: {}, from {} to {}, {}; warm-up {}.\n", format_count(starts.size()),
                     format_duration_ns(starts.front().time_ns), format_duration_ns(starts.back().time_ns),
                     beginning_text(leaks), format_count(leaks.warmup_steps));
}

}  // namespace tidemark
