#include "report/words/explain.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/text/columns.h"
#include "report/text/parts.h"
#include "report/text/text.h"
#include "report/words/frame_text.h"
#include "report/words/printable.h"

namespace tidemark {
namespace {

std::string times_text(const OomFailure& failure) {
  const std::string last = format_duration_ns(failure.last_ns);
  if (failure.count == 1) return last + " from the start";
  return fmt::format("{} times, from {} to {}; here is the state at the last", format_count(failure.count),
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
    text += ", pool n/a (taken to be the default one)";
  }
  if (failure.thread && failure.thread->tid) {
    text +=
        fmt::format(", thread {} (tid {})",
                    failure.thread->name.empty() ? "(no name)" : printable(failure.thread->name), *failure.thread->tid);
  }
  return text;
}

std::string request_text(const OomFailure& failure) {
  const OomRequest& request = failure.request;
  std::string size = format_bytes(request.bytes);
  if (failure.caching && format_bytes(request.segment) != size) {
    size += fmt::format(", for which PyTorch reserves a segment of {}", format_bytes(request.segment));
  }
  return fact("asked for", size) + fact("by", stack_text_with_callers(failure.stack)) +
         fact("on", where_text(failure)) + fact("when", times_text(failure));
}

std::string limit_text(const OomLimit& limit) {
  return fmt::format("at least {} ({} bytes) and below {} ({} bytes)", format_bytes(limit.at_least),
                     format_count(limit.at_least), format_bytes(limit.below), format_count(limit.below));
}

std::string memory_text(const OomFailure& failure, const Terminal& terminal) {
  Columns columns({"bytes", "memory of " + to_string(failure.device) + " then"});
  const auto row = [&](const std::string& bytes, const std::string& what) { columns.add({bytes, what}); };
  const auto cached = [&](const CachedMemory& memory, const char* where) {
    if (memory.pieces == 0) return;
    row(format_bytes(memory.bytes),
        fmt::format("  in {} {} {}, the largest {}", format_count(memory.pieces),
                    memory.pieces == 1 ? "piece" : "pieces", where, format_bytes(memory.largest)));
  };
  row(format_bytes(failure.allocated), "allocated: in live blocks");
  if (failure.caching) {
    row(bytes_text(failure.cached), "cached: reserved by PyTorch, in no block");
    if (failure.cache) {
      cached(failure.cache->usable, "that this request could use");
      cached(failure.cache->other_streams, "of other streams");
      cached(failure.cache->other_pools, "of other pools");
      cached(failure.cache->other_kinds,
             failure.request.pool == pytorch::BlockPool::small ? "for large blocks" : "for small blocks");
      if (failure.cache->pending != 0) row(format_bytes(failure.cache->pending), "given back, pending on a stream");
    }
    row(bytes_text(failure.reserved), "reserved by PyTorch in all");
    row(bytes_text(failure.device_free), "free on the device");
    row(bytes_text(failure.outside), failure.outside
                                         ? "in use outside PyTorch: context, libraries, other processes"
                                         : "in use outside PyTorch: the file does not say (see --capacity)");
  }
  std::string text = columns.text(terminal, 2);
  if (failure.limit) text += fact("limit", limit_text(*failure.limit) + ", if it was the same all the time");
  return text;
}

std::string why_text(const OomFailure& failure, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::heading, "  Why") + "\n";
  if (failure.findings.empty()) return text + "    " + unknown_cause_words(failure) + "\n";
  for (const OomFinding& finding : failure.findings) {
    text += fmt::format("    {:<14} {}\n", name_of(finding.cause), evidence_words(failure, finding));
  }
  return text;
}

std::string changes_text(const Explanation& explanation, const OomFailure& failure, const Terminal& terminal) {
  if (failure.changes.empty()) return {};
  std::string text = paint(terminal, Tone::heading, "  What would have let it pass") + "\n";
  for (const OomChange& change : failure.changes) {
    text += fmt::format("    {:>10}  {}\n", format_bytes(change.bytes), change_words(failure, change));
    text += fmt::format("    {:>10}  check: {}\n", "", check_words(explanation, failure, change));
  }
  return text;
}

std::string born_text(const OomHolder& holder) {
  const std::string oldest = format_duration_ns(holder.oldest_ns);
  const std::string newest = format_duration_ns(holder.newest_ns);
  return oldest == newest ? oldest : oldest + " to " + newest;
}

std::string holders_text(const OomFailure& failure, const Terminal& terminal) {
  if (failure.holders.empty()) return {};
  Columns columns({"held", "share", "blocks", "allocated at", "by whom"});
  for (const OomHolder& holder : failure.holders) {
    columns.add({format_bytes(holder.bytes), share_text(holder.share), format_count(holder.blocks), born_text(holder),
                 stack_text_with_callers(holder.stack)});
  }
  if (failure.other_holders != 0) {
    columns.add({format_bytes(failure.other_bytes), "", "", "",
                 fmt::format("({} other stacks; --top 0 lists all)", format_count(failure.other_holders))});
  }
  if (failure.unrecorded != 0) {
    columns.add({format_bytes(failure.unrecorded), "", "", "", "(in no recorded block)"});
  }
  return "\n" + columns.text(terminal, 2);
}

// Only where several stacks of one place are put together: else the rows are those of the stacks.
std::string places_text(const OomFailure& failure, const Terminal& terminal) {
  bool together = false;
  Columns columns({"held", "share", "blocks", "stacks", "by place"});
  for (const Place& place : failure.places.places) {
    together |= place.stacks > 1;
    columns.add({format_bytes(place.bytes), share_text(place.share), format_count(place.blocks),
                 format_count(place.stacks), stack_text(place.stack)});
  }
  if (!together) return {};
  if (failure.places.other_places != 0) {
    columns.add({format_bytes(failure.places.other_bytes), "", "", "",
                 fmt::format("({} other places; --top 0 lists all)", format_count(failure.places.other_places))});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string failure_text(const Explanation& explanation, const OomFailure& failure, const Terminal& terminal) {
  return paint(terminal, Tone::error, verdict_words(failure)) + "\n" + request_text(failure) + "\n" +
         memory_text(failure, terminal) + "\n" + why_text(failure, terminal) +
         changes_text(explanation, failure, terminal) + holders_text(failure, terminal) +
         places_text(failure, terminal);
}

std::string peaks_text(const Explanation& explanation) {
  std::string text = "No request failed for want of memory.\n";
  for (const DeviceSummary& device : explanation.devices) {
    const std::string reserved = device.peak_reserved_bytes
                                     ? fmt::format("{} reserved ({}), ", format_bytes(*device.peak_reserved_bytes),
                                                   at_text(device.peak_reserved_at_ns))
                                     : "";
    text += fmt::format("  {}: at most {}{} allocated ({})\n", to_string(device.device), reserved,
                        format_bytes(device.peak_allocated_bytes), at_text(device.peak_allocated_at_ns));
    if (explanation.capacity && device.peak_reserved_bytes && *device.peak_reserved_bytes <= *explanation.capacity) {
      text += fmt::format("    {} of the device's {} were never reserved\n",
                          format_bytes(*explanation.capacity - *device.peak_reserved_bytes),
                          format_bytes(*explanation.capacity));
    }
  }
  return text;
}

}  // namespace

std::string to_text(const Explanation& explanation, const Terminal& terminal) {
  std::string text;
  for (const OomFailure& failure : explanation.failures) {
    if (!text.empty()) text += "\n";
    text += failure_text(explanation, failure, terminal);
  }
  if (explanation.other_failures != 0) {
    text += fmt::format("\n({} earlier {}; --failures 0 explains all)\n", format_count(explanation.other_failures),
                        explanation.other_failures == 1 ? "failure" : "failures of other kinds");
  }
  if (explanation.devices.empty()) {
    text += no_events_text(explanation.recording);
  } else if (explanation.failures.empty()) {
    text += peaks_text(explanation);
  }
  return text + quality_hint(explanation.recording, terminal);
}

}  // namespace tidemark
