#include "report/host_ledger/host_usage.h"

#include <fmt/format.h>

#include "base/units.h"

namespace tidemark {
namespace {

std::string peak_and_end(const SampledBytes& bytes) {
  return fmt::format("{} {}, {} at end", format_bytes(bytes.peak), at_text(bytes.peak_at_ns), format_bytes(bytes.end));
}

std::string cgroup_text(const HostUsage& host) {
  std::string text = "peak " + peak_and_end(*host.cgroup_usage);
  if (host.cgroup_limit_bytes) text += fmt::format(", limit {}", format_bytes(*host.cgroup_limit_bytes));
  if (host.cgroup_oom_kills != 0) {
    text +=
        fmt::format(", {} OOM {}", format_count(host.cgroup_oom_kills), host.cgroup_oom_kills == 1 ? "kill" : "kills");
  }
  return text;
}

}  // namespace

std::vector<Fact> host_facts(const HostUsage& host) {
  std::vector<Fact> facts;
  if (host.rss) facts.push_back({"peak RSS", peak_and_end(*host.rss)});
  if (host.pss) facts.push_back({"peak PSS", peak_and_end(*host.pss)});
  const auto add = [&](const char* label, const std::optional<SampledBytes>& bytes) {
    if (bytes && bytes->peak != 0) facts.push_back({label, peak_and_end(*bytes)});
  };
  add("peak anonymous", host.anon);
  add("peak shared", host.shmem);
  add("peak of files", host.file);
  add("peak in swap", host.swap);
  add("peak locked", host.locked);
  add("peak pinned", host.pinned);
  if (host.most_job_processes.value_or(0) > 1) {
    facts.push_back({"job processes", "at most " + format_count(*host.most_job_processes)});
    if (host.job_rss) facts.push_back({"job peak RSS", peak_and_end(*host.job_rss)});
    add("job peak anon.", host.job_anon);
    add("job peak shared", host.job_shmem);
    if (host.job_pss) facts.push_back({"job peak PSS", peak_and_end(*host.job_pss)});
  }
  if (host.lowest_available_bytes) {
    facts.push_back({"least available", fmt::format("{} on the machine {}", format_bytes(*host.lowest_available_bytes),
                                                    at_text(host.lowest_available_at_ns))});
  }
  // Without a limit it is the whole machine's.
  if (host.cgroup_usage && (host.cgroup_limit_bytes || host.cgroup_oom_kills != 0)) {
    facts.push_back({"control group", cgroup_text(host)});
  }
  return facts;
}

}  // namespace tidemark
