#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/explain.h"
#include "query/words/recording_text.h"
#include "report/explain/verdict.h"
#include "report/html/markup.h"
#include "report/html/sections.h"

namespace tidemark::html {
namespace {

void add_state(std::string& out, const OomFailure& failure) {
  out += "<dl class=\"figures\">\n";
  add_figure(out, "Requested", format_bytes(failure.request.bytes),
             fmt::format("{} bytes<br>at {}", format_count(failure.request.bytes), format_duration_ns(failure.last_ns)),
             "alarm");
  add_figure(out, "Allocated", format_bytes(failure.allocated), "in live blocks", "allocated");
  add_figure(out, "Reserved", bytes_text(failure.reserved), fmt::format("of it cached: {}", bytes_text(failure.cached)),
             "reserved");
  add_figure(out, "Free on the device", bytes_text(failure.device_free), device_free_source(failure));
  out += "</dl>\n";
}

void add_causes(std::string& out, const OomFailure& failure) {
  if (failure.findings.empty()) {
    fmt::format_to(std::back_inserter(out), "<p><b>Cause:</b> {}</p>\n", escaped(unknown_cause_text(failure)));
    return;
  }
  out += "<p><b>Cause</b></p>\n<ul>\n";
  for (const OomFinding& finding : failure.findings) {
    fmt::format_to(std::back_inserter(out), "<li><b>{}</b>: {}</li>\n", name_of(finding.cause),
                   escaped(evidence_text(failure, finding)));
  }
  out += "</ul>\n";
}

void add_fixes(std::string& out, const Explanation& explanation, const OomFailure& failure) {
  if (failure.fixes.empty()) return;
  out += "<p><b>All fixes that need no change of the model</b></p>\n<ul>\n";
  for (const OomFix& fix : failure.fixes) {
    fmt::format_to(std::back_inserter(out), "<li><b>{}</b> {}<br><small>check: {}</small></li>\n",
                   format_bytes(fix.bytes), escaped(fix_text(failure, fix)),
                   escaped(check_text(explanation, failure, fix)));
  }
  out += "</ul>\n";
}

void add_failure_advice(std::string& out, const OomFailure& failure) {
  if (failure.advice.empty()) return;
  out +=
      "<p><b>Advice</b>: what some blocks held at that time, and whether the request would have fitted without</p>\n";
  open_table(out, {"held", "enough", "to try"});
  for (const OomAdvice& advice : failure.advice) {
    add_row(out, {format_bytes(advice.avoidable_peak_bytes), fits_text(advice),
                  escaped(advice_change(advice)) + "<small>" + escaped(advice_place(advice)) + "</small>"});
  }
  out += kTableEnd;
}

void add_top_allocations(std::string& out, const OomFailure& failure) {
  if (failure.top_allocations.empty()) return;
  out += "<p><b>Top allocations at that time</b></p>\n";
  open_stack_table(out, {"held", "share", "blocks", "allocated by"});
  for (const TopAllocation& allocation : failure.top_allocations) {
    add_row(out, {format_bytes(allocation.bytes), share_text(allocation.share), format_count(allocation.blocks),
                  stack_cell(allocation.stack)});
  }
  if (failure.other_allocations != 0) {
    add_row(out, {format_bytes(failure.other_bytes), "", "",
                  fmt::format("<i>{} other stacks</i>", format_count(failure.other_allocations))});
  }
  if (failure.unrecorded != 0) add_row(out, {format_bytes(failure.unrecorded), "", "", "<i>in no recorded block</i>"});
  out += kTableEnd;
}

}  // namespace

void add_ranked_fixes(std::string& out, const OomFailure& failure) {
  const std::vector<RankedFix> fixes = ranked_fixes(failure);
  if (fixes.empty()) return;
  out += "<p><b>" + fixes_title(failure, fixes.size()) + "</b></p>\n<ol>\n";
  for (const RankedFix& fix : fixes) {
    fmt::format_to(std::back_inserter(out), "<li>{}: <b>{}</b></li>\n", escaped(fix.change), fix.effect);
  }
  out += "</ol>\n";
}

void add_failures(std::string& out, const Explanation& explanation) {
  for (const OomFailure& failure : explanation.failures) {
    fmt::format_to(std::back_inserter(out), "<h4 class=\"alarm\">Out of memory <small>{}</small></h4>\n<p>{}</p>\n",
                   to_string(failure.device), escaped(verdict_text(failure)));
    add_ranked_fixes(out, failure);
    add_state(out, failure);
    out += "<p>Requested by ";
    add_stack(out, failure.stack);
    out += "</p>\n";
    add_causes(out, failure);
    add_fixes(out, explanation, failure);
    add_failure_advice(out, failure);
    add_top_allocations(out, failure);
  }
  if (explanation.other_failures != 0) {
    add_remark(out, fmt::format("And {} more: <code>tidemark explain</code> has them.",
                                format_count(explanation.other_failures)));
  }
}

}  // namespace tidemark::html
