#include "screen/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "report/words/printable.h"
#include "screen/views/parts.h"

namespace tidemark::screen {
namespace {

std::string steps_text(double steps) {
  return fmt::format("{:.0f} steps", steps);
}

// "3.2 min (2.9 min to 3.8 min)".
std::string interval_text(const Interval& interval, std::string (*text)(double)) {
  const std::string latest = interval.latest ? "to " + text(*interval.latest) : "or later, or never";
  return fmt::format("{} ({} {})", text(interval.expected), text(interval.earliest), latest);
}

std::string rate_text(double bytes_per_second) {
  return format_bytes(static_cast<std::uint64_t>(std::max(bytes_per_second, 0.0))) + "/s";
}

void add_risk(std::vector<Finding>& findings, const std::string& title, const RiskAssessment& risk, bool assessed) {
  if (!assessed || risk.level == RiskLevel::low) return;
  const FindingKind kind = risk.level == RiskLevel::medium ? FindingKind::warning : FindingKind::problem;
  findings.push_back({kind, fmt::format("{}: {} risk of running out of memory", title, name_of(risk.level)),
                      risk_lines(risk)});
}

void add_devices(std::vector<Finding>& findings, const MachineState& machine) {
  for (const std::string& problem : machine.problems) {
    findings.push_back({FindingKind::problem, printable(problem), {printable(problem)}});
  }
  for (const WatchedDevice& device : machine.devices) {
    if (!device.lost.empty()) {
      findings.push_back({FindingKind::problem, short_title_of(device) + ": lost", {printable(device.lost)}});
    }
    // The host's is said once, below.
    add_risk(findings, short_title_of(device), device.risk, device.assessed_at_ns && !device.is_host);
  }
}

void add_host(std::vector<Finding>& findings, const WatchedHost& host) {
  add_risk(findings, host.limited_by_cgroup() ? "Control group" : "Host", host.risk, host.assessed_at_ns.has_value());
  if (host.cgroup_oom_kills_at_start && host.cgroup_oom_kills > host.cgroup_oom_kills_at_start) {
    findings.push_back({FindingKind::problem, "The kernel's OOM killer ended a process of this control group",
                        {fmt::format("{} since watching began; limit {}",
                                     *host.cgroup_oom_kills - *host.cgroup_oom_kills_at_start,
                                     size_text(host.cgroup_limit_bytes))}});
  }
}

}  // namespace

std::vector<std::string> risk_lines(const RiskAssessment& risk) {
  std::vector<std::string> lines;
  if (risk.seconds_to_limit) {
    std::string line = "limit reached in " + interval_text(*risk.seconds_to_limit, duration_text);
    if (risk.steps_to_limit) line += ", " + interval_text(*risk.steps_to_limit, steps_text);
    lines.push_back(line);
  }
  std::string pattern(name_of(risk.pattern));
  std::replace(pattern.begin(), pattern.end(), '_', '-');
  if (risk.growth_bytes_per_second > 0) {
    pattern += fmt::format(", peaks grow {} ± {}", rate_text(risk.growth_bytes_per_second),
                           rate_text(risk.growth_error_bytes_per_second));
  }
  lines.push_back("pattern: " + pattern);
  std::string evidence = fmt::format("evidence: {} samples in {}", format_count(risk.sample_count),
                                     duration_text(risk.span_seconds));
  if (risk.change_points != 0) evidence += fmt::format(", after {} changes before", risk.change_points);
  if (risk.period_seconds) evidence += fmt::format(", repeats every {}", duration_text(*risk.period_seconds));
  lines.push_back(evidence);
  return lines;
}

std::vector<Finding> findings_of(const Content& content) {
  std::vector<Finding> findings;
  add_devices(findings, content.machine);
  add_host(findings, content.machine.host);
  for (const RecordedProcess& process : content.recorded) {
    for (const Finding& finding : process.findings) {
      findings.push_back(finding);
      findings.back().title = fmt::format("PID {}: {}", process.pid, finding.title);
    }
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.kind > b.kind; });
  return findings;
}

}  // namespace tidemark::screen
