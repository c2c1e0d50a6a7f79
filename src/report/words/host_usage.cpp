#include "report/words/host_usage.h"

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
  if (host.most_job_processes.value_or(0) > 1) {
    facts.push_back({"job processes", "at most " + format_count(*host.most_job_processes)});
    if (host.job_rss) facts.push_back({"job peak RSS", peak_and_end(*host.job_rss)});
    if (host.job_pss) facts.push_back({"job peak PSS", peak_and_end(*host.job_pss)});
  }
  // Without a limit it is the whole machine's.
  if (host.cgroup_usage && (host.cgroup_limit_bytes || host.cgroup_oom_kills != 0)) {
    facts.push_back({"control group", cgroup_text(host)});
  }
  return facts;
}

}  // namespace tidemark
