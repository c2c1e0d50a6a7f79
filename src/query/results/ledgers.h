// Descriptions of ledgers: all memory of a GPU or of the host at one time, and processes killed for lack of memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analyze/ledger/ledger.h"
#include "query/describe/describe.h"
#include "query/words/host_ledger.h"
#include "query/words/ledger.h"

namespace tidemark {

/// The module of Python that has these types.
inline constexpr std::string_view kLedgerTypes = "ledgers";

template <typename Visitor>
void describe(Visitor& v, const LedgerLine& line) {
  const bool library = line.part == LedgerPart::library;
  const bool process = line.part == LedgerPart::process;
  v.type("LedgerLine", "One part of the memory that is used on a device.", kLedgerTypes);
  v.field("part", named<kLedgerPartNames>(line.part));
  v.field("bytes", line.bytes);
  v.field_if(library || process, "name", known_text(line.name), "of a library or process");
  v.field_if(process, "pid", line.pid, "of a process");
  v.field_if(process, "kind", named<kProcessKindNames>(line.process_kind), "of a process");
}

template <typename Visitor>
void describe(Visitor& v, const LedgerCaveat& caveat, const LedgerBreakdown& ledger) {
  v.type("LedgerCaveat", "Why a ledger may not add up.", kLedgerTypes);
  v.field("kind", named<kLedgerCaveatNames>(caveat));
  v.field("text", [&] { return caveat_words(caveat, ledger); });
}

template <typename Visitor>
void describe(Visitor& v, const LedgerBreakdown& ledger) {
  v.type("LedgerAt", "A device's memory at one time; the lines and what is unexplained add up to what is used.",
         kLedgerTypes);
  v.field("time_ns", ledger.time_ns, "of the sample; null: nothing was recorded");
  v.field("used_bytes", ledger.used_bytes, "as the driver says; null without a sample");
  v.field("lines", ledger.lines);
  v.field("unexplained_bytes", ledger.unexplained_bytes, "may be negative");
  v.field("allocated_bytes", ledger.allocated_bytes, "by PyTorch");
  v.field("cached_bytes", ledger.cached_bytes, "by PyTorch: reserved, but not allocated");
  v.field("managed_bytes", ledger.managed_bytes,
          "not in the sum; null where no driver calls were recorded, as the next");
  v.field("pinned_host_bytes", ledger.pinned_host_bytes, "not in the sum");
  v.field("processes_sampled_at_ns", ledger.processes_sampled_at_ns, "when the list of processes was read");
  v.field("transient_peak_bytes", ledger.transient_peak_bytes,
          "at the peak: more that was used during a long call of the driver");
  v.field("caveats", in(ledger.caveats, ledger), "what is not known, and why");
}

/// Memory of a process by kind of page.
template <typename Visitor>
void describe(Visitor& v, const ProcessPages& pages) {
  v.field("rss_bytes", pages.rss_bytes);
  v.field("anon_bytes", pages.anon_bytes);
  v.field("file_bytes", pages.file_bytes);
  v.field("shmem_bytes", pages.shmem_bytes);
  v.field("swap_bytes", pages.swap_bytes);
  v.field("locked_bytes", pages.locked_bytes);
  v.field("pinned_bytes", pages.pinned_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const HostProcess& process) {
  v.type("HostProcess", "A process of the job.", kLedgerTypes);
  v.field("pid", process.pid);
  v.field("parent_pid", when(process.parent_pid >= 0, process.parent_pid));
  v.field("role", named<kProcessRoleNames>(process.role));
  v.field("recorded", process.recorded);
  v.field("number", process.number, "of a rank or DataLoader worker");
  v.field("count", process.count, "of these");
  v.field("name", known_text(process.name));
  v.part(process.pages);
  v.field("pss_bytes", process.pss_bytes, "null where it was not read with this sample");
  v.field("private_bytes", process.private_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const HostLine& line, const HostBreakdown& ledger) {
  v.type("HostLine", "One part of the memory that is used on the host.", kLedgerTypes);
  v.field("part", named<kHostPartNames>(line.part));
  v.field("bytes", line.bytes);
  v.field("pid", when(line.process.has_value(), [&] { return ledger.processes[*line.process].pid; }), "of a process");
  v.field("process_count", when(line.part == HostPart::job_processes, line.count), "of several that are one line");
  v.field("text", [&] { return line_words(line, ledger); });
}

template <typename Visitor>
void describe(Visitor& v, const MemoryEvents& events) {
  v.type("CgroupEvents", "How often a control group met its bounds.", kLedgerTypes);
  v.field("low", events.low);
  v.field("high", events.high);
  v.field("max", events.max);
  v.field("oom", events.oom);
  v.field("under_oom", events.under_oom);
}

template <typename Visitor>
void describe(Visitor& v, const HostCaveat& caveat, const HostBreakdown& /*ledger*/) {
  v.type("HostCaveat", "Why a ledger of the host may not add up.", kLedgerTypes);
  v.field("kind", named<kHostCaveatNames>(caveat));
  v.field("text", caveat_words(caveat));
}

template <typename Visitor>
void describe(Visitor& v, const HostBreakdown& ledger) {
  v.type("HostLedgerAt", "The host's memory at one time; the lines and what is unexplained add up to what is used.",
         kLedgerTypes);
  v.field("time_ns", ledger.time_ns);
  v.field("scope", named<kHostScopeNames>(ledger.scope));
  v.field("used_bytes", ledger.used_bytes);
  v.field("limit_bytes", ledger.limit_bytes, "of the machine: all its memory");
  v.field("machine_available_bytes", ledger.available_bytes, "without swapping");
  v.field("lines", in(ledger.lines, ledger));
  v.field("unexplained_bytes", ledger.unexplained_bytes, "may be negative");
  v.field("swap_bytes", ledger.swap_bytes, "not in the sum, or in several lines, as the next three");
  v.field("locked_bytes", ledger.locked_bytes);
  v.field("pinned_bytes", ledger.pinned_bytes);
  v.field("cuda_pinned_bytes", ledger.cuda_pinned_bytes);
  v.field("cgroup_events", ledger.events, "since the group exists");
  v.field("processes", ledger.processes, "of the job, at most 32, most resident bytes first");
  v.field("other_process_count", ledger.other_process_count);
  v.field("other_processes_rss_bytes", ledger.other_pages.rss_bytes);
  v.field("caveats", in(ledger.caveats, ledger));
}

/// A killed process without a recording.
template <typename Visitor>
void describe(Visitor& v, const KilledProcess& killed) {
  v.field("time_ns", killed.time_ns);
  v.field("process", killed.process);
  v.field("evidence", named<kKillEvidenceNames>(killed.evidence), "how it is known");
  v.field("scope", named<kKillScopeNames>(killed.scope), "whose memory was short");
  v.field("cgroup_usage_bytes", killed.cgroup_usage_bytes, "the most of the samples shortly before");
  v.field("cgroup_limit_bytes", killed.cgroup_limit_bytes);
}

template <typename Visitor>
void describe(Visitor& v, const HostKill& kill) {
  v.type("KilledProcess", "A process of the job that the kernel's OOM killer ended.", kLedgerTypes);
  v.part(kill.killed);
  v.field(
      "text", [&] { return kill_headline(kill); }, "a sentence");
  v.field(
      "details", [&] { return kill_details(kill); }, "what it held, how that is known, and who held most");
  v.field("before", kill.before, "the host in the last sample before");
}

}  // namespace tidemark
