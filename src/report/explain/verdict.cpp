#include "report/explain/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/explain.h"
#include "query/words/host_ledger.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxHolders = 3;
constexpr std::size_t kMaxFixes = 3;
constexpr std::size_t kStackColumns = 90;
constexpr std::size_t kMaxVictims = 2;

std::string holder_line(std::uint64_t bytes, double share, const NamedStack& stack) {
  return fmt::format("  {:>10} {:>6}  {}", format_bytes(bytes), share_text(share), stack_text(stack, kStackColumns));
}

std::string memory_line(const OomFailure& failure, std::optional<std::uint64_t> address_space_limit) {
  std::string text = fmt::format("  {} allocated", format_bytes(failure.allocated));
  if (!failure.caching && address_space_limit) {
    text +=
        fmt::format("; the process's address space is limited to {} (ulimit -v)", format_bytes(*address_space_limit));
  }
  if (!failure.caching) return text;
  return text + fmt::format(", {} cached, {} free on the device, {} used outside PyTorch", bytes_text(failure.cached),
                            bytes_text(failure.device_free), bytes_text(failure.outside));
}

// Freeing the newest blocks of a stack is not an actionable change: last. A leak's call site comes first.
int rank_of(const OomFix& fix) {
  switch (fix.kind) {
    case OomFixKind::stop_leak:
      return 0;
    case OomFixKind::settings:
    case OomFixKind::expandable:
      return 1;
    case OomFixKind::smaller_request:
      return 3;
    case OomFixKind::free_blocks:
      return 4;
    default:
      return 2;
  }
}

std::string effect_of(const OomFix& fix) {
  const std::string bytes = (fix.certain ? "" : "~") + format_bytes(fix.bytes);
  switch (fix.kind) {
    case OomFixKind::stop_leak:
      return "saves " + bytes;
    case OomFixKind::raise_limit:
      return "adds " + bytes;
    case OomFixKind::smaller_request:
      return fmt::format("needs {} less", bytes);
    case OomFixKind::settings:
    case OomFixKind::expandable:
    case OomFixKind::same_stream:
      return fmt::format("makes {} usable", bytes);
    default:
      return "frees " + bytes;
  }
}

// Memory that no later computation reads.
bool is_kept_by_mistake(AdviceKind kind) {
  return kind == AdviceKind::inference_with_autograd || kind == AdviceKind::retained_graph ||
         kind == AdviceKind::failed_call;
}

// Later in a step, the same change may save less: `plan` finds what it saves of the peak.
RankedFix fix_of(const OomFailure& failure, const OomAdvice& advice) {
  constexpr std::size_t kPlaceWidth = 60;
  const char* const when = failure.first_step && !is_kept_by_mistake(advice.kind) ? " at this moment" : "";
  return {advice_change_at(advice, kPlaceWidth), "saves " + saving_text(advice) + when};
}

std::string numbered(const std::vector<RankedFix>& fixes) {
  std::string text;
  for (std::size_t n = 0; n < fixes.size(); ++n) {
    text += fmt::format("  {}. {}: {}\n", n + 1, fixes[n].change, fixes[n].effect);
  }
  return text;
}

// What the rest of a first training step allocates beside what was allocated at the failure.
struct StillToCome {
  std::string text;
  bool exceeds_device = false;  ///< with Adam's states, whatever the batch
};

StillToCome still_to_come(const OomFailure& failure) {
  StillToCome found;
  if (!failure.first_step) return found;
  const bool is_evaluation = std::ranges::any_of(
      failure.advice, [](const OomAdvice& advice) { return advice.kind == AdviceKind::inference_with_autograd; });
  if (is_evaluation) return found;
  constexpr std::uint64_t kMomentsOfAdam = 2;
  const std::uint64_t parameters = failure.trainable_bytes;
  const std::uint64_t with_adam = (2 + kMomentsOfAdam) * parameters;  // parameters and gradients
  constexpr std::uint64_t kLeastShare = 10;                           // of what is allocated
  if (with_adam < failure.allocated / kLeastShare) return found;
  found.exceeds_device = failure.capacity && with_adam > *failure.capacity;
  if (found.exceeds_device) {
    found.text = fmt::format("Note: parameters, gradients and the states of Adam alone would take ~{} of {}\n",
                             format_bytes(with_adam), format_bytes(*failure.capacity));
    return found;
  }
  if (failure.in_optimizer) {
    found.text =
        "Fix: an optimizer with smaller states (8-bit, Adafactor, SGD), fewer trained parameters (freezing, LoRA), or "
        "foreach=False\n";
    return found;
  }
  found.text = fmt::format("Note: the first training step still has to allocate {}the optimizer's states (Adam: ~{})\n",
                           failure.gradients_to_come == 0
                               ? ""
                               : fmt::format("~{} of gradients and ", format_bytes(failure.gradients_to_come)),
                           format_bytes(kMomentsOfAdam * parameters));
  return found;
}

// Where nothing else is known to save memory: whether most of it grows with the batch.
std::string smaller_batch_text(const OomFailure& failure) {
  const std::uint64_t of_batch = failure.of_batch.value_or(0);
  if (of_batch == 0 || of_batch < failure.allocated / 2) return {};
  return fmt::format("Fix: a smaller batch, or shorter sequences: {} of {} allocated grow with them\n",
                     format_bytes(of_batch), format_bytes(failure.allocated));
}

// An evaluation goes on after the failed request, whatever the steps before it needed.
bool knows_whole_step(const OomFailure& failure) {
  const bool in_evaluation = std::ranges::any_of(
      failure.advice, [](const OomAdvice& advice) { return advice.kind == AdviceKind::inference_with_autograd; });
  return failure.step_count > 1 && !in_evaluation;
}

}  // namespace

bool batch_comes_first(const OomFailure& failure) {
  const bool mistake =
      std::ranges::any_of(failure.advice, [](const OomAdvice& advice) { return is_kept_by_mistake(advice.kind); });
  const bool leak =
      std::ranges::any_of(failure.fixes, [](const OomFix& fix) { return fix.kind == OomFixKind::stop_leak; });
  const bool is_demand =
      failure.cause == OomCause::demand || (failure.cause == OomCause::fragmentation && failure.first_step);
  return !knows_whole_step(failure) && !mistake && !leak && is_demand;
}

std::vector<RankedFix> ranked_fixes(const OomFailure& failure) {
  std::vector<RankedFix> fixes;
  const auto add = [&](const OomFix& fix) { fixes.push_back({fix_text(failure, fix), effect_of(fix)}); };
  std::vector<OomFix> others = failure.fixes;
  std::ranges::stable_sort(others, {}, rank_of);
  // In the first step, what the later requests need is not known: a smaller request alone would not have been enough.
  const bool batch_decides = !knows_whole_step(failure) && !smaller_batch_text(failure).empty();
  const bool leaks_decide =
      std::ranges::any_of(others, [](const OomFix& fix) { return fix.kind == OomFixKind::stop_leak; });
  // Beside a leak, all else only delays the failure.
  std::erase_if(others, [&](const OomFix& fix) {
    return (batch_decides && fix.kind == OomFixKind::smaller_request) ||
           (leaks_decide && fix.kind != OomFixKind::stop_leak);
  });
  for (const OomFix& fix : others) {
    if (fix.kind == OomFixKind::stop_leak) add(fix);
  }
  // What a program keeps by mistake grows with each call: freeing something else is enough for this request only.
  for (const OomAdvice& advice : failure.advice) {
    if (advice.suffices == true && is_kept_by_mistake(advice.kind)) fixes.push_back(fix_of(failure, advice));
  }
  if (fixes.empty()) {
    for (const OomAdvice& advice : failure.advice) {
      if (advice.suffices == true) fixes.push_back(fix_of(failure, advice));
    }
    for (const OomFix& fix : others) add(fix);
  }
  if (fixes.size() > kMaxFixes) fixes.resize(kMaxFixes);
  return fixes;
}

std::string fixes_title(const OomFailure& failure, std::size_t count) {
  const char* const fixes = count == 1 ? "Fix" : "Fixes";
  if (knows_whole_step(failure) || failure.device.type == DeviceType::cpu)
    return fmt::format("{} that would have been enough:", fixes);
  return fmt::format("{} for this request (later requests of the step may still fail):", fixes);
}

namespace {

std::string changes_text(const OomFailure& failure, const Terminal& terminal) {
  const std::vector<RankedFix> fixes = ranked_fixes(failure);
  if (!fixes.empty()) {
    const std::string text =
        paint(terminal, Tone::heading, fixes_title(failure, fixes.size())) + "\n" + numbered(fixes);
    return batch_comes_first(failure) ? smaller_batch_text(failure) + text : text;
  }
  std::vector<RankedFix> savings;
  for (const OomAdvice& advice : failure.advice) {
    if (savings.size() == kMaxFixes) break;
    savings.push_back(fix_of(failure, advice));
  }
  if (savings.empty()) return smaller_batch_text(failure);
  const bool unknown = std::ranges::any_of(failure.advice, [](const OomAdvice& advice) { return !advice.suffices; });
  const char* title = unknown ? "Changes that save memory (whether one is enough is unknown):"
                              : "Changes that save memory, none of them enough by itself:";
  return paint(terminal, Tone::heading, title) + "\n" + numbered(savings);
}

}  // namespace

std::string fixes_text(const OomFailure& failure, const Terminal& terminal) {
  const std::string changes = changes_text(failure, terminal);
  const StillToCome to_come = still_to_come(failure);
  return to_come.exceeds_device ? to_come.text + changes : changes + to_come.text;
}

std::vector<std::string> device_oom_lines(const Explanation& explanation,
                                          std::optional<std::uint64_t> address_space_limit) {
  if (explanation.failures.empty()) return {};
  const OomFailure& failure = explanation.failures.front();
  std::vector<std::string> lines = {out_of_memory_headline(failure, explanation.recording)};
  lines.push_back("  requested by " + stack_text_with_callers(failure.stack, kStackColumns));
  lines.push_back(memory_line(failure, address_space_limit));
  if (!failure.findings.empty()) {
    const char* certainty = !failure.caching && !failure.cause ? "possible " : "";
    lines.push_back(fmt::format("  {}cause: {}", certainty, evidence_text(failure, failure.findings.front())));
  }
  for (std::size_t index = 0; index < std::min(kMaxHolders, failure.top_allocations.size()); ++index) {
    const TopAllocation& held = failure.top_allocations[index];
    lines.push_back(holder_line(held.bytes, held.share, held.stack));
  }
  if (const std::vector<RankedFix> fixes = ranked_fixes(failure); !fixes.empty()) {
    lines.push_back(fmt::format("  fix: {}: {}", fixes.front().change, fixes.front().effect));
  }
  return lines;
}

std::vector<std::string> host_oom_lines(const HostOomFacts& facts, const Table* held) {
  const std::string what = "Out of memory on the host: ";
  std::vector<std::string> lines;
  for (std::size_t index = 0; index < std::min(kMaxVictims, facts.kills.size()); ++index) {
    const KilledProcess& killed = facts.kills[index].killed;
    lines.push_back((index == 0 ? what : "  and ") + process_words(killed.process) + " " + killed_words(killed, ""));
  }
  if (facts.kills.size() > kMaxVictims) {
    lines.back() += fmt::format(", and {} more", format_count(facts.kills.size() - kMaxVictims));
  }
  if (facts.kills.empty()) {
    lines.push_back(
        fmt::format("{}the kernel killed {} of the control group{}, none that is known to be the program's", what,
                    facts.unexplained_kills == 1 ? "a process" : format_count(facts.unexplained_kills) + " processes",
                    facts.cgroup.empty() ? "" : " " + printable(facts.cgroup)));
  } else {
    const HostKill& first = facts.kills.front();
    const KilledProcess& killed = first.killed;
    if (!facts.cgroup.empty()) {
      lines.push_back(fmt::format("  control group {}: limit {}, {} in use shortly before", printable(facts.cgroup),
                                  bytes_text(killed.cgroup_limit_bytes), bytes_text(killed.cgroup_usage_bytes)));
    }
    lines.push_back("  " + held_words(killed.process.pages));
    lines.push_back(fmt::format("  {}", evidence_words(killed.evidence)));
    std::string most = first.before ? most_memory_words(*first.before) : std::string();
    if (!most.empty()) lines.push_back("  " + most);
  }
  if (held == nullptr || held->sections.empty()) return lines;
  const TableSection& section = held->sections.front();
  lines.push_back(fmt::format("  {} in recorded CPU tensors at the end{}", format_bytes(section.allocated_bytes),
                              section.rows.empty() ? "" : ", most of it by"));
  for (std::size_t index = 0; index < std::min(kMaxHolders, section.rows.size()); ++index) {
    const TableRow& row = section.rows[index];
    if (const auto* stack = std::get_if<NamedStack>(&row.key))
      lines.push_back(holder_line(row.bytes, row.share, *stack));
  }
  return lines;
}

std::string unexplained_oom_line(const std::string& path) {
  return fmt::format("Out of memory on a device. More: `tidemark explain {}`", printable(path));
}

std::vector<std::string> held_lines(const Overview& overview, std::string_view asked) {
  std::vector<std::string> lines = {asked.empty() ? "The program failed; no out-of-memory error recorded"
                                                  : fmt::format("Dumped on {}", asked)};
  for (const DeviceSummary& device : overview.devices) {
    if (!device.peak_allocated_at_ns) continue;
    lines.push_back(fmt::format("  {}: peak allocated {}, at the end {}", to_string(device.device),
                                format_bytes(device.peak_allocated_bytes), format_bytes(device.live_allocated_bytes)));
  }
  return lines;
}

std::vector<std::string> dumped_lines(const std::vector<DumpedRecording>& recordings, std::size_t most) {
  std::vector<std::string> lines;
  for (const DumpedRecording& recording : recordings) {
    if (lines.size() + 1 == most && recordings.size() > most) {
      lines.push_back(fmt::format("  and {} more recordings", format_count(recordings.size() - lines.size())));
      break;
    }
    lines.push_back(fmt::format("{}: the last {} of process {}, {} events, {}", printable(recording.path),
                                format_duration_ns(recording.duration_ns),
                                recording.pid ? std::to_string(*recording.pid) : "n/a",
                                format_count(recording.event_count), format_bytes(recording.bytes)));
  }
  return lines;
}

std::string not_dumped_line(const std::string& error, const std::string& folder) {
  return fmt::format("no dump: {}; what was kept is in {}", printable(error), printable(folder));
}

}  // namespace tidemark
