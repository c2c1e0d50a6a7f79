#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyze/common/earlier_frees.h"
#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/attribution.h"
#include "query/words/fragmentation.h"
#include "query/words/frame_text.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/fragmentation/words.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/leaks/words.h"
#include "report/patterns/text.h"

namespace tidemark::html {
namespace {

void add_paragraph(std::string& out, std::string_view words) {
  fmt::format_to(std::back_inserter(out), "<p>{}</p>\n", words);
}

std::string more_stacks(std::size_t stacks) {
  return stacks == 1 ? "" : fmt::format("<small>one of {} stacks at this line</small>", format_count(stacks));
}

std::string owners_text(const GrowthByOwner& growth) {
  std::string text;
  for (const OwnedGrowth& row : growth.rows) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", escaped(owner_text(row.owner)), rate_text(row.bytes_per_step));
  }
  if (growth.other_rows != 0) text += fmt::format(", and {} more", format_count(growth.other_rows));
  return text;
}

void add_leak_object(std::string& out, const LeakObject& object) {
  std::string text =
      fmt::format("<b>{}</b>: {}. {} per step at {} call sites, {} at the end.", escaped(leak_object_text(object)),
                  escaped(stack_text(object.last)), rate_text(object.growth.bytes_per_step.value),
                  format_count(object.leaks), format_bytes(object.held_bytes));
  if (object.caller) text += fmt::format(" Common caller: {}.", escaped(frame_text(*object.caller)));
  for (const GrowthByOwner& growth : object.owners) {
    text += fmt::format(" By {}: {}.", name_in(kOwnerKindNames, growth.kind), owners_text(growth));
  }
  add_paragraph(out, text);
}

std::string perhaps_input(const Leaks& leaks, const LeakSite& site) {
  const bool is_one = site.object < leaks.objects.size() && leaks.objects[site.object].perhaps_input;
  return is_one ? fmt::format("<small>{}</small>", kPerhapsInput) : "";
}

void add_leaks(std::string& out, const Leaks& leaks) {
  fmt::format_to(std::back_inserter(out), "<h4{}>Leaks</h4>\n",
                 leaks.verdict == LeakVerdict::leak ? " class=\"alarm\"" : "");
  add_paragraph(out, escaped(leak_verdict(leaks)) + (leaks.verdict == LeakVerdict::insufficient_data ? "" : "."));
  for (const LeakFix& fix : leak_fixes(leaks)) {
    add_paragraph(out, fmt::format("<b>Fix</b> of {}: {} ({}).", step_rate_text(fix.bytes_per_step, fix.every_steps),
                                   escaped(fix.fix), escaped(fix.cause)));
  }
  for (const HostGrowth& growth : leaks.host_growth) {
    add_paragraph(out, escaped(host_growth_text(growth)) + "; " + escaped(host_growth_causes(growth)) + ".");
  }
  for (const LeakObject& object : leaks.objects) {
    if (object.kind != LeakObjectKind::call_site) add_leak_object(out, object);
  }
  if (!leaks.leaks.empty()) {
    open_stack_table(out, {"per step", "95% interval", "growing steps", "held at end", "device", "allocated by"});
    for (const LeakSite& site : leaks.leaks) {
      const Growth& growth = site.growth;
      add_row(out,
              {rate_text(growth.bytes_per_step.value),
               fmt::format("{} to {}", rate_text(growth.bytes_per_step.low), rate_text(growth.bytes_per_step.high)),
               fmt::format("{} of {}", format_count(growth.grown_steps), format_count(growth.analyzed_steps)),
               format_bytes(site.held_bytes), to_string(site.device),
               stack_cell(site.stack) + more_stacks(site.stack_ids.size()) + perhaps_input(leaks, site)});
    }
    out += kTableEnd;
  }
  if (const std::string small = small_leaks_text(leaks); !small.empty()) add_remark(out, escaped(small) + ".");
  if (!leaks.kept_over_steps.empty()) {
    add_paragraph(out, std::string(kKeptOverSteps) + ":");
    open_stack_table(out, {"at most", "blocks", "of steps", "freed", "device", "allocated by"});
    for (const KeptSite& site : leaks.kept_over_steps) {
      add_row(out, {format_bytes(site.bytes), format_count(site.blocks), format_count(site.steps),
                    fmt::format("{} times", format_count(site.times)), to_string(site.device), stack_cell(site.stack)});
    }
    out += kTableEnd;
  }
  if (!leaks.non_leak_growth.empty()) {
    add_paragraph(out, "Grew, but is not a leak by the criterion:");
    open_stack_table(out, {"held at end", "device", "allocated by, and reason"});
    for (const LeakSite& site : leaks.non_leak_growth) {
      add_row(out, {format_bytes(site.held_bytes), to_string(site.device),
                    stack_cell(site.stack) + "<small>" + escaped(growth_text(site.growth)) + "</small>"});
    }
    out += kTableEnd;
  }
  if (leaks.leak_count > leaks.leaks.size() || leaks.non_leak_growth_count > leaks.non_leak_growth.size() ||
      leaks.kept_over_steps_count > leaks.kept_over_steps.size()) {
    add_remark(out, "Not all are listed: <code>tidemark leaks --top 0</code> has them.");
  }
  if (const std::string steps = leak_steps(leaks); !steps.empty())
    add_remark(out, escaped(steps.substr(0, steps.size() - 1)));
}

void add_pinning(std::string& out, const FragmentationDevice& device) {
  if (device.pinning.empty()) return;
  add_paragraph(out, "Call stacks whose blocks keep segments with free memory from being released, at the peak:");
  open_stack_table(out, {"pinned free memory", "segments", "blocks", "bytes", "allocated by"});
  for (const PinningStack& row : device.pinning) {
    add_row(out, {format_bytes(row.pinned_free_bytes), format_count(row.segments), format_count(row.blocks),
                  format_bytes(row.bytes), stack_cell(row.stack)});
  }
  out += kTableEnd;
  if (device.other_pinning != 0) {
    add_remark(out, fmt::format("And {} more: <code>tidemark fragmentation --top 0</code>.",
                                format_count(device.other_pinning)));
  }
}

void add_unused(std::string& out, const FragmentationDevice& device, const RecordingInfo& recording) {
  const UnusedMemory& unused = device.unused;
  add_paragraph(out, escaped(fragmentation_verdict(unused)));
  if (!unused.known()) return;
  const std::string trend = unused.trend ? fmt::format(" Unused memory {}.", unused_trend_text(unused)) : "";
  add_paragraph(out, escaped(fmt::format("Pattern: {}.{} Forecast: {}.", unused_pattern_text(unused), trend,
                                         unused_forecast_text(unused))));
  for (const FragmentationAdvice& advice : device.advice) {
    const FragmentationAdviceText words = advice_text(advice, unused, recording);
    add_remark(out, escaped(fmt::format("Advice: {}. Because {}.", words.change, words.reason)) + " Check: <code>" +
                        escaped(words.check) + "</code>.");
  }
}

void add_fragmentation(std::string& out, const FragmentationDevice& device, const RecordingInfo& recording) {
  if (!device.totals.peak_reserved_bytes || !device.totals.peak_allocated_at_ns) return;
  fmt::format_to(std::back_inserter(out), "<h4>Fragmentation <small>{}</small></h4>\n",
                 to_string(device.totals.device));
  add_paragraph(out, "How much of the reserved memory is used, by separate measures.");
  std::vector<std::string> headings;
  for (const MeasureColumn& moment : measure_columns(device)) headings.emplace_back(moment.name);
  headings.emplace_back("");
  open_table(out, headings);
  for (MeasureRow& row : measure_rows(device)) {
    const std::string_view label = row.label;
    row.cells.push_back(label.starts_with(' ') ? "<span class=\"part\">" + escaped(label.substr(2)) + "</span>"
                                               : escaped(label));
    add_row(out, row.cells);
  }
  out += kTableEnd;
  add_paragraph(out, fmt::format("The share of reserved memory that is not allocated {}.",
                                 trend_text(device.unused.share_trend)));
  add_unused(out, device, recording);
  if (device.knows_segments) {
    add_paragraph(out, fmt::format("External fragmentation (1 - largest free block / free) {}.",
                                   trend_text(device.external_trend)));
  }
  add_pinning(out, device);
}

void add_temporary(std::string& out, const Temporary& temporary, const TemporaryDevice& device) {
  if (!device.totals.peak_allocated_at_ns) return;
  fmt::format_to(std::back_inserter(out), "<h4>Temporary allocations <small>{}</small></h4>\n",
                 to_string(device.totals.device));
  const bool one = temporary.within == 1;
  add_paragraph(out,
                fmt::format("{} of {} allocations were freed after at most {} other allocation{}: {} of {} over time "
                            "({}). Without them the peak would be {} instead of {}, if nothing else changes.",
                            format_count(device.count), format_count(device.totals.allocation_count),
                            format_count(temporary.within), one ? "" : "s", format_bytes(device.bytes),
                            format_bytes(device.totals.total_bytes_allocated), share_text(device.share),
                            format_bytes(device.reduced_peak_bytes), format_bytes(device.totals.peak_allocated_bytes)));
  if (device.rows.empty()) return;
  open_stack_table(out, {"total", "share", "allocations", "largest", "allocated by"});
  for (const TemporaryRow& row : device.rows) {
    add_row(out, {format_bytes(row.bytes), share_text(row.share), format_count(row.count),
                  format_bytes(row.largest_bytes), stack_cell(row.stack)});
  }
  out += kTableEnd;
  if (device.other_rows != 0) {
    add_remark(out,
               fmt::format("And {} more: <code>tidemark temporary --top 0</code>.", format_count(device.other_rows)));
  }
}

void add_pattern(std::string& out, const PatternsDevice& device, const NamedPattern& named) {
  const std::uint64_t saving = device.avoidable_peak_bytes(*named.pattern);
  add_paragraph(
      out, fmt::format("<b>{}</b>: {} of the peak. Freed earlier, the peak would be {} instead of {}, if nothing "
                       "else changes: at most {} saved. To try: {}.",
                       escaped(named.title), format_bytes(named.pattern->peak_bytes),
                       format_bytes(named.pattern->reduced_peak_bytes),
                       format_bytes(device.totals.peak_allocated_bytes), format_bytes(saving), escaped(named.advice)));
  open_stack_table(out, {"held at peak", "blocks", "total blocks", "allocated by"});
  for (const PatternRow& row : named.pattern->rows) {
    if (row.peak_bytes == 0) continue;
    add_row(out, {format_bytes(row.peak_bytes), format_count(row.peak_blocks), format_count(row.count),
                  stack_cell(row.stack)});
  }
  out += kTableEnd;
  if (named.pattern->other_peak_bytes != 0)
    add_remark(out, "Not all are listed: <code>tidemark patterns --top 0</code>.");
}

void add_lifetimes(std::string& out, const PatternsDevice& device) {
  const std::uint64_t peak = device.totals.peak_allocated_bytes;
  if (peak == 0) return;
  fmt::format_to(std::back_inserter(out), "<h4>Lifetimes <small>{}</small></h4>\n", to_string(device.totals.device));
  add_paragraph(out, "How long the blocks at the peak live, and which of them could be freed earlier.");
  open_table(out, {"held at peak", "share", "blocks", "lifetime"});
  for (std::size_t index = 0; index < kLifetimes; ++index) {
    const LifetimeUsage& held = device.held[index];
    if (held.bytes == 0) continue;
    add_row(out, {format_bytes(held.bytes), share_text(share_of(held.bytes, device.whole_peak_bytes())),
                  format_count(held.blocks), escaped(kLifetimeWords[index])});
  }
  out += kTableEnd;
  for (const Advice& advice : device.advice) {
    add_paragraph(out, fmt::format("<b>{}.</b> Saving: {}. To try: {}.", escaped(advice_finding(advice)),
                                   escaped(advice_saving(advice)), escaped(advice_change(advice))));
  }
  std::string smaller;
  for (const NamedPattern& named : named_patterns(device)) {
    const std::uint64_t saving = device.avoidable_peak_bytes(*named.pattern);
    if (is_worth_advice(saving, peak)) {
      add_pattern(out, device, named);
    } else if (saving != 0) {
      smaller += fmt::format("{}{}: {}", smaller.empty() ? "" : "; ", named.title, avoidable_peak_text(saving, peak));
    }
  }
  if (!smaller.empty()) add_remark(out, "Smaller savings: " + escaped(smaller) + ".");
}

}  // namespace

void add_findings(std::string& out, const PageContents& contents, const std::string& id) {
  if (contents.summary.devices.empty()) return;
  open_section(out, id + "findings", "Findings", "Results of the analyses of this run, each with its evidence.");
  add_failures(out, contents.explanation);
  add_leaks(out, contents.leaks);
  for (const FragmentationDevice& device : contents.fragmentation.devices)
    add_fragmentation(out, device, contents.fragmentation.recording);
  for (const TemporaryDevice& device : contents.temporary.devices) add_temporary(out, contents.temporary, device);
  for (const PatternsDevice& device : contents.patterns.devices) add_lifetimes(out, device);
  out += kSectionEnd;
}

}  // namespace tidemark::html
