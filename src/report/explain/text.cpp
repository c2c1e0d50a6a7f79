#include "report/common/text.h"

#include <fmt/format.h>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/explain.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/explain/verdict.h"

namespace tidemark {
namespace {

const char* cause_words(OomCause cause) {
  switch (cause) {
    case OomCause::leak:
      return "leak";
    case OomCause::other_process:
      return "memory outside PyTorch";
    case OomCause::limit:
      return "memory limit";
    case OomCause::fragmentation:
      return "fragmentation";
    case OomCause::demand:
      break;
  }
  return "demand";
}

std::string times_text(const OomFailure& failure) {
  const std::string last = format_duration_ns(failure.last_ns);
  if (failure.count == 1) return last + " after the start";
  return fmt::format("{} errors from {} to {}; state at the last one", format_count(failure.count),
                     format_duration_ns(failure.first_ns), last);
}

std::string where_text(const OomFailure& failure) {
  std::string text = to_string(failure.device);
  if (failure.stream) {
    text += *failure.stream == 0 ? ", default stream" : fmt::format(", stream 0x{:x}", *failure.stream);
  }
  if (failure.pool) {
    text += *failure.pool == PoolId{}
                ? ", default pool"
                : fmt::format(", private pool ({}, {})", failure.pool->first, failure.pool->second);
  } else if (failure.cache) {
    text += ", pool unknown (default pool assumed)";
  }
  if (failure.thread && failure.thread->tid) {
    text += fmt::format(", thread {} (tid {})",
                        failure.thread->name.empty() ? "(no name)" : shown(failure.thread->name), *failure.thread->tid);
  }
  return text;
}

std::string request_text(const OomFailure& failure, const Terminal& terminal) {
  const OomRequest& request = failure.request;
  std::string size = format_bytes(request.bytes);
  if (failure.caching && format_bytes(request.segment) != size) {
    size += fmt::format(" (segment to reserve: {})", format_bytes(request.segment));
  }
  return fact("requested", size) + fact("requested by", fitted_with_callers(failure.stack), terminal) +
         fact("device", where_text(failure)) + fact("time", times_text(failure));
}

std::string limit_text(const OomLimit& limit) {
  return fmt::format("between {} ({} bytes) and {} ({} bytes)", format_bytes(limit.at_least),
                     format_count(limit.at_least), format_bytes(limit.below), format_count(limit.below));
}

std::string memory_text(const OomFailure& failure, const Terminal& terminal) {
  Columns columns({"bytes", "memory of " + to_string(failure.device)});
  const auto row = [&](const std::string& bytes, const std::string& what) { columns.add({bytes, what}); };
  const auto cached = [&](const CachedMemory& memory, const char* where) {
    if (memory.blocks == 0) return;
    row(format_bytes(memory.bytes), fmt::format("  {}: {} free {}, largest {}", where, format_count(memory.blocks),
                                                memory.blocks == 1 ? "block" : "blocks", format_bytes(memory.largest)));
  };
  row(format_bytes(failure.allocated), "allocated");
  if (failure.caching) {
    row(bytes_text(failure.cached), "cached (reserved, not allocated)");
    if (failure.cache) {
      cached(failure.cache->usable, "usable for this request");
      cached(failure.cache->other_streams, "other streams");
      cached(failure.cache->other_pools, "other pools");
      cached(failure.cache->other_kinds, failure.request.pool == pytorch::BlockPool::small
                                             ? "segments for large blocks"
                                             : "segments for small blocks");
      if (failure.cache->pending != 0)
        row(format_bytes(failure.cache->pending), "pending free (in use by another stream)");
    }
    row(bytes_text(failure.reserved), "reserved by PyTorch");
    row(bytes_text(failure.device_free), failure.sampled_at_ns
                                             ? fmt::format("free on the device ({})", device_free_source(failure))
                                             : "free on the device");
    const bool alone = failure.other_processes == std::uint64_t{0};
    row(bytes_text(failure.outside), !failure.outside ? "used outside PyTorch (unknown; set --capacity)"
                                     : alone          ? "used outside PyTorch (context and libraries of this process)"
                                                      : "used outside PyTorch (context, libraries, other processes)");
    if (failure.other_processes && !alone) row(format_bytes(*failure.other_processes), "  other processes");
  }
  std::string text = columns.text(terminal, 2);
  if (failure.limit) text += fact("limit", limit_text(*failure.limit) + ", if constant during the run");
  return text;
}

std::string cause_text(const OomFailure& failure) {
  if (failure.findings.empty()) return fact("cause", unknown_cause_text(failure));
  std::string text;
  for (const OomFinding& finding : failure.findings) {
    text += fact(&finding == &failure.findings.front() ? "cause" : "",
                 fmt::format("{}: {}", cause_words(finding.cause), evidence_text(failure, finding)));
  }
  return text;
}

std::string all_fixes_text(const Explanation& explanation, const OomFailure& failure, const Terminal& terminal) {
  if (failure.fixes.empty()) return {};
  std::string text = paint(terminal, Tone::heading, "  All fixes that need no change of the model") + "\n";
  for (const OomFix& fix : failure.fixes) {
    text += fmt::format("    {:>10}  {}\n", format_bytes(fix.bytes), fix_text(failure, fix));
    text += fmt::format("    {:>10}  check: {}\n", "", check_text(explanation, failure, fix));
  }
  return text;
}

std::string allocated_at_text(const TopAllocation& allocation) {
  const std::string oldest = format_duration_ns(allocation.oldest_ns);
  const std::string newest = format_duration_ns(allocation.newest_ns);
  return oldest == newest ? oldest : oldest + " to " + newest;
}

std::string top_allocations_text(const OomFailure& failure, const Terminal& terminal) {
  if (failure.top_allocations.empty()) return {};
  const HolderWords words = holder_words(failure.top_allocations, &TopAllocation::stack, "stack");
  const bool by_owner = failure.top_allocations.front().stack.owner.has_value();
  Columns columns({"held", "share", "blocks", "allocated at", by_owner ? words.one : "allocated by"});
  for (const TopAllocation& allocation : failure.top_allocations) {
    columns.add({format_bytes(allocation.bytes), share_text(allocation.share), format_count(allocation.blocks),
                 allocated_at_text(allocation)},
                fitted_with_callers(allocation.stack));
  }
  if (failure.other_allocations != 0) {
    columns.add(
        {format_bytes(failure.other_bytes), "", "", "",
         fmt::format("({} other {}; --top 0 lists all)", format_count(failure.other_allocations), words.several)});
  }
  if (failure.unrecorded != 0) {
    columns.add({format_bytes(failure.unrecorded), "", "", "", "(not recorded)"});
  }
  return "\n" + columns.text(terminal, 2);
}

// Call sites, each with all of its stacks; owners if they were requested.
std::string holders_text(const OomFailure& failure, const Terminal& terminal) {
  const CallSites& sites = failure.call_sites;
  if (sites.call_sites.empty()) return top_allocations_text(failure, terminal);
  const HolderWords words = holder_words(sites.call_sites, &CallSite::stack, "call site");
  Columns columns({"allocated", "share", "blocks", words.one});
  for (const CallSite& site : sites.call_sites) {
    columns.add({format_bytes(site.bytes), share_cell(site.share, terminal), format_count(site.blocks)},
                fitted(site.stack));
  }
  if (sites.other_call_sites != 0) {
    columns.add({format_bytes(sites.other_bytes), "", "",
                 fmt::format("({} other {}; --top 0 lists all)", format_count(sites.other_call_sites), words.several)});
  }
  if (failure.unrecorded != 0) columns.add({format_bytes(failure.unrecorded), "", "", "(not recorded)"});
  return "\n" + columns.text(terminal, 2);
}

// Only if a call site has several stacks; otherwise the rows would repeat the rows of the stacks.
std::string call_sites_text(const OomFailure& failure, const Terminal& terminal) {
  bool together = false;
  Columns columns({"held", "share", "blocks", "stacks", "call site"});
  for (const CallSite& site : failure.call_sites.call_sites) {
    together |= site.stacks > 1;
    columns.add({format_bytes(site.bytes), share_cell(site.share, terminal), format_count(site.blocks),
                 format_count(site.stacks)},
                fitted(site.stack));
  }
  if (!together) return {};
  if (failure.call_sites.other_call_sites != 0) {
    columns.add(
        {format_bytes(failure.call_sites.other_bytes), "", "", "",
         fmt::format("({} other call sites; --top 0 lists all)", format_count(failure.call_sites.other_call_sites))});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string failure_text(const Explanation& explanation, const OomFailure& failure, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::error, verdict_text(failure)) + "\n" + fixes_text(failure, terminal) + "\n" +
                     cause_text(failure) + request_text(failure, terminal) + "\n" + memory_text(failure, terminal);
  if (!terminal.all) return text + holders_text(failure, terminal);
  return text + "\n" + all_fixes_text(explanation, failure, terminal) +
         (failure.advice.empty() ? "" : "\n" + advice_text(failure.advice, terminal)) +
         top_allocations_text(failure, terminal) + call_sites_text(failure, terminal);
}

std::string peaks_text(const Explanation& explanation) {
  std::string text = "No out-of-memory errors recorded.\n";
  for (const DeviceSummary& device : explanation.devices) {
    if (!device.peak_allocated_at_ns) {
      text += "  " + nothing_allocated_text(device.device, {}, device.peak_reserved_bytes) + "\n";
      continue;
    }
    const std::string reserved = device.peak_reserved_bytes
                                     ? fmt::format("peak reserved {} ({}), ", format_bytes(*device.peak_reserved_bytes),
                                                   at_text(device.peak_reserved_at_ns))
                                     : "";
    text += fmt::format("  {}: {}peak allocated {} ({})\n", to_string(device.device), reserved,
                        format_bytes(device.peak_allocated_bytes), at_text(device.peak_allocated_at_ns));
    if (explanation.capacity && device.peak_reserved_bytes && *device.peak_reserved_bytes <= *explanation.capacity) {
      text += fmt::format("    never reserved: {} of {}\n",
                          format_bytes(*explanation.capacity - *device.peak_reserved_bytes),
                          format_bytes(*explanation.capacity));
    }
  }
  return text;
}

}  // namespace

std::string to_text(const Explanation& explanation, const Terminal& terminal) {
  std::string text = kills_text(explanation.kills, terminal);
  for (const OomFailure& failure : explanation.failures) {
    if (!text.empty()) text += "\n";
    text += failure_text(explanation, failure, terminal);
  }
  if (explanation.other_failures != 0) {
    text += fmt::format("\n({} other {}; --failures 0 lists all)\n", format_count(explanation.other_failures),
                        explanation.other_failures == 1 ? "out-of-memory error" : "out-of-memory errors");
  }
  if (explanation.devices.empty()) {
    text += no_events_text(explanation.recording);
  } else if (explanation.failures.empty()) {
    text += (text.empty() ? "" : "\n") + peaks_text(explanation);
  }
  text += quality_hint(explanation.recording, terminal);
  if (explanation.failures.empty()) {
    return text + next_text(explanation.recording, "summary", "what held the peak", terminal);
  }
  const OomFailure& failure = explanation.failures.front();
  const bool may_leak = !failure.findings.empty() && failure.findings.front().cause == OomCause::leak;
  if (may_leak) return text + next_text(explanation.recording, "leaks", "what leaks", terminal);
  const std::optional<std::string> program = pasted_command(explanation.recording);
  if (program && batch_comes_first(failure)) {
    const std::string& planned = explanation.recording.simulated_gpu;
    const std::string gpu = planned.empty() ? "" : "--gpu " + shell_word(planned) + " ";
    return text + next_command("tidemark plan " + gpu + "-- " + *program, "plans smaller batches, and other changes",
                               terminal);
  }
  if (failure.cause == OomCause::fragmentation) {
    return text + next_text(explanation.recording, "fragmentation", "which blocks keep segments", terminal);
  }
  const bool may_plan = program && failure.caching && explanation.recording.simulated_gpu.empty();
  if (may_plan && ranked_fixes(failure).empty()) {
    return text +
           next_command("tidemark plan -- " + *program, "finds what it needs, and changes that make it fit", terminal);
  }
  if (!failure.advice.empty() && !terminal.all) {
    return text + next_text(explanation.recording, "explain --all", "all fixes with their checks, and all call sites",
                            terminal);
  }
  return text + next_text(explanation.recording, "report", "the whole recording on one page", terminal);
}

}  // namespace tidemark
