#include "report/patterns/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyze/common/earlier_frees.h"
#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string lifetimes_text(const PatternsDevice& device, const Terminal& terminal) {
  Columns columns({"at peak", "share", "blocks", "lifetime"});
  const auto add = [&](std::uint64_t bytes, const std::string& blocks, const char* lifetime) {
    if (bytes == 0) return;
    columns.add({format_bytes(bytes), share_text(share_of(bytes, device.whole_peak_bytes())), blocks, lifetime});
  };
  for (std::size_t index = 0; index < kLifetimes; ++index) {
    add(device.held[index].bytes, format_count(device.held[index].blocks), kLifetimeWords[index]);
  }
  add(device.unrecorded_at_peak_bytes(), "", "(not recorded)");
  return "\n" + columns.text(terminal, 2);
}

// Only blocks alive at the peak: the others do not add to it.
std::string rows_text(const Pattern& pattern, const Terminal& terminal) {
  Columns columns({"at peak", "blocks", "total blocks", "stack"});
  std::uint64_t others = pattern.other_rows;
  for (const PatternRow& row : pattern.rows) {
    if (row.peak_bytes == 0) {
      ++others;
      continue;
    }
    columns.add({format_bytes(row.peak_bytes), format_count(row.peak_blocks), format_count(row.count)},
                fitted_with_callers(row.stack));
  }
  if (pattern.peak_bytes == 0) return {};
  if (others != 0) {
    columns.add(
        {format_bytes(pattern.other_peak_bytes), "", "",
         fmt::format("({} more{})", format_count(others), pattern.other_peak_bytes == 0 ? "" : "; --top 0 lists all")});
  }
  return columns.text(terminal, 2);
}

std::string pattern_text(const PatternsDevice& device, const NamedPattern& named, const Terminal& terminal) {
  const Pattern& pattern = *named.pattern;
  std::string text = "\n" + paint(terminal, Tone::heading, named.title) + "\n";
  if (pattern.count == 0) return text + "  none\n";
  text += fact("blocks", fmt::format("{}, holding {} at the peak", format_count(pattern.count),
                                     format_bytes(pattern.peak_bytes)));
  text += fact("reduced peak", peak_text(pattern.reduced_peak_bytes, pattern.reduced_peak_at_ns));
  const std::uint64_t saving = device.avoidable_peak_bytes(pattern);
  text += fact("saves", avoidable_peak_text(saving, device.totals.peak_allocated_bytes));
  if (is_worth_advice(saving, device.totals.peak_allocated_bytes)) text += fact("possible fix", named.advice);
  return text + rows_text(pattern, terminal);
}

std::string finding_text(const Advice& advice, const Terminal& terminal) {
  std::string text = "\n" + paint(terminal, Tone::heading, advice_finding(advice)) + "\n";
  if (advice.modules.empty() && !advice.stack.frames.empty()) {
    text += fact("allocated by", fitted_with_callers(advice.stack), terminal);
  }
  return text + fact("saving", advice_saving(advice)) + fact("possible fix", advice_change(advice));
}

std::string device_text(const PatternsDevice& device, const Patterns& patterns, const Terminal& terminal) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) return nothing_allocated_text(totals.device) + "\n";
  const std::string steps = patterns.steps == 0   ? "no training steps detected"
                            : patterns.steps == 1 ? "1 training step"
                                                  : format_count(patterns.steps) + " training steps";
  std::string text =
      fmt::format("{}: peak {} allocated {}, {}\n", paint(terminal, Tone::heading, to_string(totals.device)),
                  format_bytes(totals.peak_allocated_bytes), at_text(totals.peak_allocated_at_ns), steps);
  const std::vector<NamedPattern> patterns_of_lifetime = named_patterns(device);
  const bool saves = std::ranges::any_of(patterns_of_lifetime, [&](const NamedPattern& named) {
    return is_worth_advice(device.avoidable_peak_bytes(*named.pattern), totals.peak_allocated_bytes);
  });
  if (device.advice.empty() && !saves) text += "  No change found that saves 1 MiB and 1% of the peak.\n";
  text += advice_text(device.advice, 0, terminal);
  for (const Advice& advice : device.advice) text += finding_text(advice, terminal);
  text += lifetimes_text(device, terminal);
  for (const NamedPattern& named : patterns_of_lifetime) text += pattern_text(device, named, terminal);
  return text;
}

}  // namespace

std::string avoidable_peak_text(std::uint64_t saving, std::uint64_t peak) {
  if (saving == 0) return "none (the peak stays the same)";
  const char* remark = is_worth_advice(saving, peak) ? "" : " (less than 1 MiB or 1% of the peak)";
  return fmt::format("up to {}{}", format_bytes(saving), remark);
}

std::string to_text(const Patterns& patterns, const Terminal& terminal) {
  std::string text = join_devices(
      patterns.devices, [&](const PatternsDevice& device) { return device_text(device, patterns, terminal); });
  if (patterns.devices.empty()) text += no_events_text(patterns.recording);
  return text + quality_hint(patterns.recording, terminal);
}

}  // namespace tidemark
