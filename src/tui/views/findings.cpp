// Findings: risks of the devices and the host; leaks, fragmentation and advice of recorded processes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "monitor/machine_state.h"
#include "query/words/monitors.h"
#include "query/words/printable.h"
#include "query/words/risks.h"
#include "tui/table.h"
#include "tui/view.h"
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
    // The host's is listed once, below.
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

// Risks from medium on, failing drivers, lost devices, processes that the OOM killer ended; then findings in recorded
// processes.
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

Role role_of(FindingKind kind) {
  if (kind == FindingKind::problem) return Role::critical;
  return kind == FindingKind::warning ? Role::warning : Role::plain;
}

std::size_t finding_row_count(const Content& content, const ViewState& /*state*/) {
  return findings_of(content).size();
}

void draw_findings(const Region& region, const Content& content, const ViewState& state) {
  const std::vector<Finding> findings = findings_of(content);
  if (findings.empty()) {
    const std::size_t y = draw_paragraph(region, 0, "Nothing was found so far.");
    if (content.recorded.empty()) {
      draw_paragraph(region, y,
                     "Leaks, fragmentation and advice need a process that is recorded: start it with "
                     "`tidemark run -- python train.py`.",
                     Role::quiet);
    }
    return;
  }
  if (state.selected == kNoRow) {
    std::size_t y = 0;
    for (const Finding& finding : findings) {
      region.print(0, y++, finding.title, role_of(finding.kind));
      const Region below = region.part(2, 0, region.width() - 2, region.height());
      for (const std::string& line : finding.details) y = draw_paragraph(below, y, line);
    }
    return;
  }
  const std::size_t selected = row_of(state.selected, findings.size());
  const std::size_t height = region.height() * 2 / 5;
  const std::size_t first = first_shown(findings.size(), selected, height);
  std::size_t y = 0;
  for (std::size_t n = first; n < findings.size() && y < height; ++n, ++y) {
    region.print(0, y, findings[n].title, role_of(findings[n].kind));
    if (n == selected) region.select_row(y);
  }
  draw_rule(region, y + 1, "");
  y += 2;
  const std::string& title = findings[selected].title;
  if (display_width(title) > region.width()) y = draw_paragraph(region, y, title, role_of(findings[selected].kind));
  for (const std::string& line : findings[selected].details) y = draw_paragraph(region, y, line);
}

}  // namespace

View findings_view() {
  return {.name = "findings",
          .title = "Findings",
          .keys = "",
          .of_recordings = true,
          .rows = finding_row_count,
          .draw = draw_findings};
}

}  // namespace tidemark::tui
