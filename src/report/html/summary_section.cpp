#include <fmt/format.h>

#include <iterator>

#include "analyze/common/earlier_frees.h"
#include "base/units.h"
#include "query/words/data_quality.h"
#include "query/words/explain.h"
#include "query/words/recording_text.h"
#include "report/common/text_parts.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/leaks/words.h"

namespace tidemark::html {
namespace {

std::string exactly(std::uint64_t bytes, const std::optional<std::uint64_t>& at_ns) {
  return fmt::format("{} bytes<br>{}", format_count(bytes), at_text(at_ns));
}

void add_device(std::string& out, const SummaryDevice& device) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) {
    add_remark(out, escaped(nothing_allocated_text(totals.device, {}, totals.peak_reserved_bytes)));
    return;
  }
  add_device_heading(out, totals.device);
  out += "<dl class=\"figures\">\n";
  add_figure(out, "Peak allocated", format_bytes(totals.peak_allocated_bytes),
             exactly(totals.peak_allocated_bytes, totals.peak_allocated_at_ns), "allocated");
  if (totals.peak_reserved_bytes) {
    add_figure(out, "Peak reserved", format_bytes(*totals.peak_reserved_bytes),
               exactly(*totals.peak_reserved_bytes, totals.peak_reserved_at_ns), "reserved");
  } else {
    add_figure(out, "Peak reserved", "n/a", "not reported by this device");
  }
  if (totals.peak_active_bytes) {
    add_figure(out, "Peak active", format_bytes(*totals.peak_active_bytes),
               exactly(*totals.peak_active_bytes, totals.peak_active_at_ns), "active");
  }
  add_figure(out, "Allocated at the end", format_bytes(totals.live_allocated_bytes),
             fmt::format("in {} recorded blocks<br>{} reserved", format_count(totals.live_count),
                         bytes_text(totals.end_reserved_bytes)));
  add_figure(out, "Allocations", format_count(totals.allocation_count),
             fmt::format("{} over time<br>{} frees", format_bytes(totals.total_bytes_allocated),
                         format_count(totals.free_count)));
  if (totals.out_of_memory_count != 0) {
    add_figure(out, "Out of memory", format_count(totals.out_of_memory_count),
               totals.out_of_memory_count == 1 ? "failed request" : "failed requests", "alarm");
  }
  out += "</dl>\n";
}

void add_quality(std::string& out, const DataQuality& quality) {
  const char* emphasis = quality.complete ? "span" : "strong";
  fmt::format_to(std::back_inserter(out), "<p class=\"quality\"><b>Data quality:</b> <{0}>{1}</{0}></p>\n", emphasis,
                 quality_verdict(quality));
  if (quality.issues.empty()) return;
  out += "<ul class=\"notes\">\n";
  for (const QualityIssue& issue : quality.issues) {
    const Severity severity = facts_of(issue.id).severity;
    fmt::format_to(std::back_inserter(out), "<li><b class=\"{}\">{}</b> {}</li>\n",
                   severity == Severity::info ? "info" : "alarm", name_of(severity), escaped(quality_text(issue)));
  }
  out += "</ul>\n";
}

void add_host(std::string& out, const HostUsage& host) {
  if (host.empty()) return;
  out += "<h3>Host memory, sampled</h3>\n<ul class=\"notes\">\n";
  for (const Fact& fact : host_facts(host)) {
    fmt::format_to(std::back_inserter(out), "<li><b class=\"info\">{}</b> {}</li>\n", fact.label, escaped(fact.value));
  }
  out += "</ul>\n";
}

// The findings, a line each.
void add_glance(std::string& out, const PageContents& contents, const std::string& id) {
  out += "<ul class=\"glance\">\n";
  for (const SummaryDevice& device : contents.summary.devices) {
    const std::uint64_t failures = device.totals.out_of_memory_count;
    if (failures == 0) continue;
    fmt::format_to(std::back_inserter(out), "<li class=\"alarm\">{}: out of memory, {} failed</li>\n",
                   to_string(device.totals.device), failures == 1 ? "1 request" : format_count(failures) + " requests");
  }
  const LeakVerdict verdict = contents.leaks.verdict;
  fmt::format_to(std::back_inserter(out), "<li{}>{}{}</li>\n", verdict == LeakVerdict::leak ? " class=\"alarm\"" : "",
                 verdict == LeakVerdict::insufficient_data ? "Leaks: not determined. " : "",
                 escaped(leak_verdict(contents.leaks)));
  for (const FragmentationDevice& device : contents.fragmentation.devices) {
    if (!device.at_peak_allocated || !device.at_peak_allocated->unused_share()) continue;
    fmt::format_to(std::back_inserter(out), "<li>{}: {} of the reserved memory was not allocated at the peak</li>\n",
                   to_string(device.totals.device), share_text(device.at_peak_allocated->unused_share()));
  }
  for (const TemporaryDevice& device : contents.temporary.devices) {
    if (!is_worth_advice(device.avoidable_peak_bytes(), device.totals.peak_allocated_bytes)) continue;
    fmt::format_to(std::back_inserter(out),
                   "<li>{}: avoiding temporary allocations can save at most {} of the peak</li>\n",
                   to_string(device.totals.device), format_bytes(device.avoidable_peak_bytes()));
  }
  fmt::format_to(std::back_inserter(out), "</ul>\n<p><a href=\"#{}findings\">Details</a> are below.</p>\n", id);
}

// The leak and what to do, if nothing failed.
void add_leak_verdict(std::string& out, const Leaks& leaks) {
  if (leaks.verdict != LeakVerdict::leak) return;
  fmt::format_to(std::back_inserter(out), "<p class=\"verdict alarm\">{}</p>\n", escaped(leak_verdict(leaks)));
  const std::vector<LeakFix> fixes = leak_fixes(leaks);
  if (fixes.empty()) return;
  out += "<p><b>Fixes:</b></p>\n<ol>\n";
  for (const LeakFix& fix : fixes) {
    fmt::format_to(std::back_inserter(out), "<li>{}: <b>{}</b> ({})</li>\n", escaped(fix.fix),
                   step_rate_text(fix.bytes_per_step, fix.every_steps), escaped(fix.cause));
  }
  out += "</ol>\n";
}

}  // namespace

void add_verdict(std::string& out, const PageContents& contents) {
  if (!contents.summary.failure) return add_leak_verdict(out, contents.leaks);
  fmt::format_to(std::back_inserter(out), "<p class=\"verdict alarm\">{}</p>\n",
                 escaped(verdict_text(*contents.summary.failure)));
  add_ranked_fixes(out, *contents.summary.failure);
}

void add_summary(std::string& out, const PageContents& contents, const std::string& id) {
  open_section(
      out, id + "summary", "Summary",
      "<b>Allocated</b> is the memory of live blocks, <b>reserved</b> what the allocator reserved from the driver.");
  for (const SummaryDevice& device : contents.summary.devices) add_device(out, device);
  if (contents.summary.devices.empty()) {
    fmt::format_to(std::back_inserter(out), "<p>{}</p>\n", escaped(no_events_text(contents.recording)));
  }
  add_host(out, contents.summary.host);
  if (!contents.summary.devices.empty()) add_glance(out, contents, id);
  add_quality(out, contents.recording.quality);
  out += kSectionEnd;
}

}  // namespace tidemark::html
