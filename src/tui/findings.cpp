#include "tui/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "query/words/monitors.h"
#include "query/words/printable.h"
#include "query/words/risks.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

void add_risk(std::vector<Finding>& findings, const std::string& title, const RiskAssessment& risk, bool assessed,
              const std::string& recommendation) {
  if (!assessed || risk.level == RiskLevel::low) return;
  const FindingKind kind = risk.level == RiskLevel::medium ? FindingKind::warning : FindingKind::problem;
  findings.push_back({kind,
                      fmt::format("{}: {} risk of running out of memory", title, name_of(risk.level)),
                      {printable(recommendation)}});
}

void add_devices(std::vector<Finding>& findings, const MachineState& machine) {
  for (const std::string& problem : machine.problems) {
    findings.push_back({FindingKind::problem, printable(problem), {printable(problem)}});
  }
  for (const WatchedDevice& device : machine.devices) {
    if (!device.lost.empty()) {
      findings.push_back({FindingKind::problem, short_title(device) + ": lost", {printable(device.lost)}});
    }
    // The host's is said once, below.
    add_risk(findings, short_title(device), device.risk, device.assessed_at_ns && !device.is_host,
             recommendation_text(device, machine));
  }
}

void add_host(std::vector<Finding>& findings, const MachineState& machine) {
  const WatchedHost& host = machine.host;
  add_risk(findings, host.limited_by_cgroup() ? "Control group" : "Host", host.risk, host.assessed_at_ns.has_value(),
           host_recommendation_text(machine));
  if (host.cgroup_oom_kills_at_start && host.cgroup_oom_kills > host.cgroup_oom_kills_at_start) {
    findings.push_back(
        {FindingKind::problem,
         "The kernel's OOM killer ended a process of this control group",
         {fmt::format("{} since watching began; limit {}", *host.cgroup_oom_kills - *host.cgroup_oom_kills_at_start,
                      size_text(host.cgroup_limit_bytes))}});
  }
}

}  // namespace

std::vector<Finding> findings_of(const Content& content) {
  std::vector<Finding> findings;
  add_devices(findings, content.machine);
  add_host(findings, content.machine);
  for (const ProcessResults& process : content.recorded) {
    for (const Finding& finding : process.findings) {
      findings.push_back(finding);
      findings.back().title = fmt::format("PID {}: {}", process.pid, finding.title);
    }
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.kind > b.kind; });
  return findings;
}

}  // namespace tidemark::tui
