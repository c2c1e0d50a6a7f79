#include "query/words/host_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"

namespace tidemark {
namespace {

std::string numbered(const char* what, const HostProcess& process) {
  if (!process.number) return what;
  std::string words = fmt::format("{} {}", what, *process.number);
  if (process.count) words += fmt::format(" of {}", *process.count);
  return words;
}

std::string share_of_used(double bytes, const HostBreakdown& ledger) {
  if (ledger.used_bytes.value_or(0) == 0) return {};
  return share_text(bytes / static_cast<double>(*ledger.used_bytes));
}

std::string times(std::uint64_t count, const char* what) {
  return fmt::format("{} {}", what, count == 1 ? "once" : format_count(count) + " times");
}

}  // namespace

std::string role_words(const HostProcess& process) {
  std::string name = process.name.empty() ? std::string("a process") : shown(process.name);
  switch (process.role) {
    case ProcessRole::main:
      return "main process " + name;
    case ProcessRole::rank:
      return numbered("rank", process);
    case ProcessRole::data_worker:
      return numbered("DataLoader worker", process);
    case ProcessRole::resource_tracker:
      return "resource tracker of multiprocessing";
    case ProcessRole::fork_server:
      return "fork server of multiprocessing";
    case ProcessRole::compile_worker:
      return "torch.compile worker";
    case ProcessRole::launcher:
      return "launcher " + name;
    case ProcessRole::child:
      return "child process " + name;
    case ProcessRole::other:
      break;
  }
  return name;
}

std::string process_words(const HostProcess& process) {
  return fmt::format("{} (pid {}{})", role_words(process), process.pid, process.recorded ? ", recorded" : "");
}

std::string line_words(const HostLine& line, const HostBreakdown& ledger) {
  switch (line.part) {
    case HostPart::process:
      return process_words(ledger.processes[*line.process]);
    case HostPart::job_processes:
      return fmt::format("{} other {} of the job", format_count(line.count), line.count == 1 ? "process" : "processes");
    case HostPart::other_processes:
      return "other processes";
    case HostPart::shared_memory:
      return "shared memory and tmpfs";
    case HostPart::page_cache:
      return "page cache (files, mostly reclaimable)";
    case HostPart::kernel:
      return "kernel";
    case HostPart::sockets:
      return "sockets";
  }
  return {};
}

std::string host_title(const HostBreakdown& ledger) {
  std::string title = ledger.scope == HostScope::cgroup ? "host  control group" : "host  machine";
  title += fmt::format("  {} used", bytes_text(ledger.used_bytes));
  if (ledger.limit_bytes) title += " of " + format_bytes(*ledger.limit_bytes);
  return title + " " + at_text(ledger.time_ns);
}

std::vector<LedgerRow> host_rows(const HostBreakdown& ledger) {
  std::vector<LedgerRow> rows;
  rows.reserve(ledger.lines.size() + 1);
  for (const HostLine& line : ledger.lines) {
    rows.push_back({bytes_text(line.bytes), line.bytes ? share_of_used(static_cast<double>(*line.bytes), ledger) : "",
                    line_words(line, ledger)});
  }
  const auto& rest = ledger.unexplained_bytes;
  rows.push_back(
      {signed_bytes_text(rest), rest ? share_of_used(static_cast<double>(*rest), ledger) : "", "unexplained"});
  return rows;
}

std::vector<std::string> host_remarks(const HostBreakdown& ledger) {
  std::vector<std::string> remarks;
  const auto add = [&](const std::optional<std::uint64_t>& bytes, const char* what) {
    if (bytes.value_or(0) != 0) remarks.push_back(format_bytes(*bytes) + what);
  };
  add(ledger.available_bytes, " available on the machine without swapping");
  add(ledger.swap_bytes, " in swap, not included");
  add(ledger.locked_bytes, " locked by mlock(), included");
  add(ledger.pinned_bytes, " pinned by drivers, included");
  add(ledger.cuda_pinned_bytes,
      " pinned by CUDA for the recorded process: the kernel counts it for no process, so it is part of unexplained or "
      "outside the control group");
  const MemoryEvents& events = ledger.events;
  if (events.max.value_or(0) != 0) remarks.push_back(times(*events.max, "The control group reached its limit"));
  if (events.high.value_or(0) != 0) {
    remarks.push_back(times(*events.high, "The control group was slowed down for being above memory.high"));
  }
  if (events.oom.value_or(0) != 0) remarks.push_back(times(*events.oom, "The control group ran out of memory"));
  if (events.under_oom.value_or(false))
    remarks.emplace_back("Processes of the control group stood still, out of memory");
  return remarks;
}

std::string_view caveat_words(HostCaveat caveat) {
  switch (caveat) {
    case HostCaveat::shared_pages:
      return "pages that a forked process shares with its parent are counted in both: which are its own was not read "
             "yet";
    case HostCaveat::estimated_pages:
      return "which pages are forked processes' own is estimated from the latest PSS reading, which is taken more "
             "rarely";
    case HostCaveat::anon_unknown:
      return "the kernel does not say how much memory of a process is anonymous";
    case HostCaveat::parts_unknown:
      return "the kernel does not say what the used memory consists of";
  }
  return {};
}

HostTable host_table(const HostBreakdown& ledger) {
  HostTable table;
  if (ledger.processes.size() < 2) return table;
  table.headings = {"RSS", "anonymous", "shared", "files", "PSS", "process"};
  const auto add = [&](const ProcessPages& pages, const std::optional<std::uint64_t>& pss, std::string words) {
    table.rows.push_back({bytes_text(pages.rss_bytes), bytes_text(pages.anon_bytes), bytes_text(pages.shmem_bytes),
                          bytes_text(pages.file_bytes), pss ? format_bytes(*pss) : "", std::move(words)});
  };
  for (const HostProcess& process : ledger.processes) add(process.pages, process.pss_bytes, process_words(process));
  if (ledger.other_process_count != 0) {
    add(ledger.other_pages, {}, fmt::format("({} others)", format_count(ledger.other_process_count)));
  }
  return table;
}

std::string killed_words(const KilledProcess& killed, const std::string& at) {
  std::string text =
      fmt::format("{} by the kernel's OOM killer{}{}",
                  killed.evidence == KillEvidence::vanished ? "probably killed" : "killed", at.empty() ? "" : " ", at);
  switch (killed.scope) {
    case KillScope::cgroup:
      text += ", its control group had reached its limit";
      if (killed.cgroup_limit_bytes) text += " of " + format_bytes(*killed.cgroup_limit_bytes);
      break;
    case KillScope::machine:
      text += ", the machine was out of memory";
      break;
    case KillScope::unknown:
      break;
  }
  return text;
}

std::string held_words(const ProcessPages& pages) {
  if (!pages.rss_bytes) return "Memory use unknown: no sample of it was taken";
  return fmt::format("It held {} resident: {} anonymous, {} of files, {} of shared memory",
                     format_bytes(*pages.rss_bytes), bytes_text(pages.anon_bytes), bytes_text(pages.file_bytes),
                     bytes_text(pages.shmem_bytes));
}

std::string_view evidence_words(KillEvidence evidence) {
  switch (evidence) {
    case KillEvidence::kernel_log:
      return "Known from the kernel's log, which names the process";
    case KillEvidence::exit_signal:
      return "Known from its end by SIGKILL when the kernel's count of OOM kills had risen";
    case KillEvidence::vanished:
      return "It was gone when the control group's count of OOM kills had risen; of what it died is not known";
  }
  return {};
}

std::string most_memory_words(const HostBreakdown& before) {
  constexpr std::size_t kMaxHolders = 4;
  std::vector<const HostLine*> largest;
  for (const HostLine& line : before.lines) {
    if (line.bytes.value_or(0) != 0) largest.push_back(&line);
  }
  std::stable_sort(largest.begin(), largest.end(),
                   [](const HostLine* left, const HostLine* right) { return left->bytes > right->bytes; });
  if (largest.size() > kMaxHolders) largest.resize(kMaxHolders);
  std::string most;
  for (const HostLine* line : largest) {
    most += fmt::format("{}{} {}", most.empty() ? "" : ", ", line_words(*line, before), format_bytes(*line->bytes));
  }
  return most.empty() ? most : fmt::format("Most memory {}: {}", at_text(before.time_ns), most);
}

std::string kill_headline(const HostKill& kill) {
  return fmt::format("{}: {}", process_words(kill.killed.process),
                     killed_words(kill.killed, at_text(kill.killed.time_ns)));
}

std::vector<std::string> kill_details(const HostKill& kill) {
  const KilledProcess& killed = kill.killed;
  std::vector<std::string> lines = {held_words(killed.process.pages)};
  if (killed.cgroup_usage_bytes && killed.cgroup_limit_bytes) {
    lines.push_back(fmt::format("The control group used {} of {} shortly before",
                                format_bytes(*killed.cgroup_usage_bytes), format_bytes(*killed.cgroup_limit_bytes)));
  }
  lines.emplace_back(evidence_words(killed.evidence));
  std::string most = kill.before ? most_memory_words(*kill.before) : std::string();
  if (!most.empty()) lines.push_back(std::move(most));
  return lines;
}

}  // namespace tidemark
