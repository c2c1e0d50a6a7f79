// Findings: risks of the devices and the host; leaks, fragmentation and advice of recorded processes.
#include "tui/findings.h"

#include <fmt/format.h>

#include "query/words/printable.h"
#include "tui/table.h"
#include "tui/views/parts.h"
#include "tui/views/views.h"

namespace tidemark::tui {
namespace {

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
