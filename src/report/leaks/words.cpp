#include "report/leaks/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

constexpr const char* kRemoveReferences = "remove the references to what these call sites allocate";

std::string doubt_text(const Leaks& leaks) {
  switch (leaks.insufficient) {
    case InsufficientData::no_steps:
      return "no training steps detected";
    case InsufficientData::too_few_steps:
      return fmt::format("{} training steps found, at least {} required with a warm-up of {}",
                         format_count(leaks.steps.starts.size()),
                         format_count(leaks.warmup_steps + kMinAnalyzedSteps + 2), format_count(leaks.warmup_steps));
    case InsufficientData::none:
    case InsufficientData::no_events:
      break;
  }
  return "no events recorded";
}

std::string beginning_text(const Leaks& leaks) {
  switch (leaks.steps.source) {
    case TrainingSteps::Source::given:
      return "start times as specified";
    case TrainingSteps::Source::annotation:
      return fmt::format("a step starts at each mark '{}'", shown(leaks.mark.value_or("")));
    case TrainingSteps::Source::optimizer:
      return "a step starts at the first allocation of the optimizer";
    case TrainingSteps::Source::stack:
      return "a step starts at each allocation by " + stack_text(leaks.anchor, kStackInSentence);
    case TrainingSteps::Source::sizes:
      return "detected from repeating allocation sizes";
    case TrainingSteps::Source::none:
      break;
  }
  return {};
}

// The period of all leaks, if it is the same.
std::uint32_t common_period(const Leaks& leaks) {
  const std::uint32_t period = leaks.objects.empty() ? 0 : leaks.objects.front().growth.every_steps;
  const bool common =
      leaks.object_count == leaks.objects.size() &&
      std::ranges::all_of(leaks.objects, [&](const LeakObject& leak) { return leak.growth.every_steps == period; });
  return common ? period : 0;
}

std::string found_text(const Leaks& leaks) {
  std::string text = fmt::format("Leak: {} {} by {}", format_count(leaks.leak_count),
                                 leaks.leak_count == 1 ? "call site grows" : "call sites grow",
                                 step_rate_text(leaks.bytes_per_step, common_period(leaks)));
  std::uint64_t objects = 0;
  std::uint64_t sites = 0;
  bool graphs = true;
  for (const LeakObject& object : leaks.objects) {
    if (object.kind == LeakObjectKind::call_site) continue;
    ++objects;
    sites += object.leaks;
    graphs &= object.kind == LeakObjectKind::autograd_graph;
  }
  if (objects == 0) return text;
  const std::string which =
      sites == leaks.leak_count ? (objects == 1 ? "all" : "") : fmt::format("{} of them", format_count(sites));
  const char* what = graphs ? "autograd graph" : "forward pass";
  const std::string where = objects == 1 ? fmt::format("in {} {}", graphs ? "a retained" : "what is kept of a", what)
                            : graphs     ? fmt::format("in {} retained autograd graphs", format_count(objects))
                                         : fmt::format("in what is kept of {} forward passes", format_count(objects));
  return fmt::format("{}, {}{}{}", text, which, which.empty() ? "" : " ", where);
}

// A result that is allocated inside a module of the model is seen by the model's code and by hooks only, if the model
// does not return it.
std::string usual_holder(const LeakSite* site) {
  const auto modules = site == nullptr ? 0 : std::ranges::count_if(site->stack.frames, &FrameName::is_module);
  if (modules < 2 || !site->stack.module) {
    return "a list, dictionary or cache that this code adds to, or the autograd graph of a tensor that is kept "
           "(keep .detach() or .item() of it)";
  }
  return fmt::format("a forward hook of {}, or a list in the code of the model",
                     printable(site->stack.frames[*site->stack.module].function));
}

LeakFix leak_fix(const Leaks& leaks, std::size_t index) {
  const LeakObject& object = leaks.objects[index];
  const MatchedMistake& mistake = object.mistake;
  if (mistake.mistake == UsualMistake::none) {
    const std::vector<const LeakSite*> sites = leaks_of(leaks, index);
    return {kRemoveReferences, "usually held by " + usual_holder(sites.empty() ? nullptr : sites.front()),
            object.growth.bytes_per_step.value, object.growth.every_steps, false};
  }
  const MistakeWords words = usual_mistake_words(mistake.mistake, object.device);
  const std::string holder = mistake.holder.empty() ? "" : shown(mistake.holder) + ": ";
  const char* known = mistake.confidence == Confidence::exact ? "cause" : "likely cause";
  return {fmt::format("{}{}", holder, words.fix), fmt::format("{}: {}", known, words.cause),
          object.growth.bytes_per_step.value, object.growth.every_steps};
}

bool is_python(const ProcessInfo& process) {
  return !process.python_version.empty() || process.stack_mode == "python" || process.stack_mode == "both";
}

std::string no_large_leak(const Leaks& leaks) {
  const std::string steps = format_count(leaks.analyzed_steps);
  if (leaks.min_growth)
    return fmt::format("No leak of {} per step or more in {} steps", format_bytes(*leaks.min_growth), steps);
  return fmt::format("No leak of {} per step, or of {:.0f}% of the peak in {} steps", format_bytes(kLeakFloorPerStep),
                     kLeakFloorOfPeak * 100, steps);
}

}  // namespace

std::vector<LeakFix> leak_fixes(const Leaks& leaks) {
  std::vector<LeakFix> fixes;
  const auto add = [](LeakFix& sum, double bytes_per_step, std::uint32_t every_steps) {
    if (sum.bytes_per_step == 0) sum.every_steps = every_steps;
    if (sum.every_steps != every_steps) sum.every_steps = 0;
    sum.bytes_per_step += bytes_per_step;
  };
  for (std::size_t index = 0; index < leaks.objects.size(); ++index) {
    const bool is_unknown = leaks.objects[index].mistake.mistake == UsualMistake::none;
    if (is_unknown && (leaks.objects[index].perhaps_input || !is_python(leaks.recording.process))) continue;
    LeakFix fix = leak_fix(leaks, index);
    // What usually holds the fastest of those that match no mistake holds the others too.
    const auto known = std::ranges::find_if(fixes, [&](const LeakFix& other) {
      return other.fix == fix.fix && (other.cause == fix.cause || !(other.is_known || fix.is_known));
    });
    if (known == fixes.end()) {
      fixes.push_back(std::move(fix));
    } else {
      add(*known, fix.bytes_per_step, fix.every_steps);
    }
  }
  return fixes;
}

std::string leak_fixes_text(const Leaks& leaks) {
  const std::vector<LeakFix> fixes = leak_fixes(leaks);
  if (fixes.size() == 1) return fmt::format("Fix: {}\n  {}\n", fixes.front().fix, fixes.front().cause);
  std::string text = fixes.empty() ? "" : "Fixes:\n";
  std::size_t number = 0;
  for (const LeakFix& fix : fixes) {
    text += fmt::format("  {}. {}: {}\n     {}\n", ++number, step_rate_text(fix.bytes_per_step, fix.every_steps),
                        fix.fix, fix.cause);
  }
  return text;
}

std::optional<std::string> find_holders_command(const Leaks& leaks) {
  if (std::ranges::all_of(leak_fixes(leaks), &LeakFix::is_known)) return std::nullopt;
  const std::optional<std::string> program = pasted_command(leaks.recording);
  if (!program) return std::nullopt;
  return "tidemark leak --enable-tracking -- " + *program;
}

std::string rate_text(double bytes) {
  if (bytes >= 1024) return format_bytes(static_cast<std::uint64_t>(std::llround(bytes)));
  return bytes == std::floor(bytes) ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} B", bytes);
}

std::string step_rate_text(double bytes_per_step, std::uint32_t every_steps) {
  if (every_steps == 0) return rate_text(bytes_per_step) + " per step";
  return fmt::format("{} every {} steps", rate_text(bytes_per_step * every_steps), every_steps);
}

std::string growth_text(const Growth& growth) {
  switch (growth.classification) {
    case GrowthClass::leak:
      break;
    case GrowthClass::too_few:
      return fmt::format("grew in only {} of {} steps", format_count(growth.grown_steps),
                         format_count(growth.analyzed_steps));
    case GrowthClass::stopped:
      return fmt::format("stopped growing after {} steps", format_count(growth.grown_steps));
    case GrowthClass::slowing:
      return "growth slows down, as in a cache that fills up";
    case GrowthClass::unclear:
      return fmt::format("recording too short: blocks are freed after up to {} steps",
                         format_count(growth.released_after));
    case GrowthClass::with_work:
      return "grows with the work per step";
  }
  return {};
}

std::string leak_verdict(const Leaks& leaks) {
  switch (leaks.verdict) {
    case LeakVerdict::leak:
      return found_text(leaks);
    case LeakVerdict::no_leak:
      if (leaks.small_leak_count != 0) return no_large_leak(leaks);
      return fmt::format("No leak: no call site kept growing over {} steps", format_count(leaks.analyzed_steps));
    case LeakVerdict::insufficient_data:
      return "Insufficient data: " + doubt_text(leaks);
  }
  return {};
}

std::string host_growth_text(const HostGrowth& growth) {
  const std::string course =
      fmt::format("grows by {} per second, from {} at {} to {} at {}", rate_text(growth.bytes_per_second),
                  format_bytes(growth.from_bytes), format_duration_ns(growth.from_ns), format_bytes(growth.to_bytes),
                  format_duration_ns(growth.to_ns));
  if (growth.of_other_processes) return fmt::format("Host memory (PSS) of the job's other processes {}", course);
  return fmt::format("Host memory of the process {}; tensors on the CPU are {} of it", course,
                     format_bytes(growth.tensor_bytes));
}

std::string host_growth_causes(const HostGrowth& growth) {
  if (growth.of_other_processes) {
    return "usual cause: workers of a DataLoader copy the pages of Python objects that they read: keep these in an "
           "array or a tensor";
  }
  return "usual causes: losses kept with their autograd graphs, a profiler that is never stopped, a list or a cache of "
         "Python objects, an extension module; or small tensors that are kept between large freed ones, so that malloc "
         "cannot return memory (MALLOC_MMAP_THRESHOLD_=65536 in the environment prevents that)";
}

std::string leak_object_text(const LeakObject& object) {
  if (object.kind == LeakObjectKind::autograd_graph) {
    return "An autograd graph is retained, likely by the tensor that it ends in";
  }
  return "Several tensors of one forward pass are retained; the last of them";
}

std::vector<const LeakSite*> leaks_of(const Leaks& leaks, std::size_t object) {
  std::vector<const LeakSite*> sites;
  for (const LeakSite& site : leaks.leaks) {
    if (site.object == object) sites.push_back(&site);
  }
  return sites;
}

std::string small_leaks_text(const Leaks& leaks) {
  if (leaks.small_leak_count == 0) return {};
  const std::string rate = rate_text(leaks.small_bytes_per_step);
  if (leaks.small_leak_count == 1) return fmt::format("1 smaller leak, {} per step; `--min-growth 0` lists it", rate);
  return fmt::format("{} smaller leaks, {} per step in total; `--min-growth 0` lists them",
                     format_count(leaks.small_leak_count), rate);
}

std::string leak_text(const Leaks& leaks, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::warning, leak_verdict(leaks)) + "\n";
  if (!leaks.leaks.empty()) text += "  " + stack_text_with_callers(leaks.leaks.front().stack, terminal.width) + "\n";
  return text + leak_fixes_text(leaks);
}

std::string leak_steps(const Leaks& leaks) {
  const auto& starts = leaks.steps.starts;
  if (starts.empty()) return {};
  const std::string warmup =
      leaks.warmup_steps == 0 ? "no warm-up" : fmt::format("warm-up: {} steps", format_count(leaks.warmup_steps));
  return fmt::format("Training steps: {}{}, from {} to {}; {}; {}\n", leaks.of_last_part ? "the last " : "",
                     format_count(leaks.steps.count()), format_duration_ns(starts.front().time_ns),
                     format_duration_ns(starts.back().time_ns), beginning_text(leaks), warmup);
}

}  // namespace tidemark
