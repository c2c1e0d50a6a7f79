#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/leaks/words.h"

namespace tidemark {
namespace {

constexpr std::size_t kParts = 5;  // maximum number of parts of each kind in the growth of an object

// Several stacks of one line have different callers; blocks without a stack are identified by their size.
FittedText fitted_site(const LeakSite& site) {
  return [&site](std::size_t width) {
    std::string more;
    if (site.stack_ids.size() > 1) more += fmt::format(" ({} stacks)", format_count(site.stack_ids.size()));
    if (site.requested_bytes) more += fmt::format(", {} bytes each", format_count(*site.requested_bytes));
    if (more.empty()) return stack_text_with_callers(site.stack, width);
    return stack_text(site.stack, width == 0 ? 0 : width - std::min(width - 1, more.size())) + more;
  };
}

std::string step_text(std::uint32_t step, std::uint64_t time_ns) {
  return fmt::format("step {} ({})", format_count(step), format_duration_ns(time_ns));
}

// Memory of a leak or an object.
template <typename Held>
std::string held_text(const Held& held) {
  return fmt::format("{} in {} blocks kept, from {} to {}", format_bytes(held.held_bytes),
                     format_count(held.held_blocks), step_text(held.growth.first_step, held.first_step_ns),
                     step_text(held.growth.last_step, held.last_step_ns));
}

void add_fitted(Columns& columns, std::string line) {
  columns.add_below([line = std::move(line)](std::size_t width) { return fit(line, width); });
}

// A part of the growth of an object.
void add_part(Columns& columns, double bytes_per_step, FittedText what) {
  const std::string rate = fmt::format("{:>11}  ", rate_text(bytes_per_step));
  columns.add_below([rate, what = std::move(what)](std::size_t width) {
    return rate + what(width == 0 ? 0 : width - std::min(width - 1, rate.size()));
  });
}

void add_owners(Columns& columns, const GrowthByOwner& growth) {
  add_fitted(columns, plural_of(growth.kind));
  for (std::size_t index = 0; index < std::min(growth.rows.size(), kParts); ++index) {
    const OwnedGrowth& row = growth.rows[index];
    add_part(columns, row.bytes_per_step,
             [text = owner_text(row.owner)](std::size_t width) { return fit(text, width); });
  }
  const std::size_t more = growth.rows.size() - std::min(growth.rows.size(), kParts) + growth.other_rows;
  if (more != 0) add_fitted(columns, fmt::format("{:>11}  ({} more)", "", format_count(more)));
}

// Its leaks as parts, as owners are.
void add_object(Columns& columns, const Leaks& leaks, std::size_t index) {
  const LeakObject& object = leaks.objects[index];
  add_fitted(columns, leak_object_text(object) + ":");
  columns.add_below([&object](std::size_t width) {
    return "  " + stack_text_with_callers(object.last, width == 0 ? 0 : width - std::min<std::size_t>(width - 1, 2));
  });
  if (object.caller) add_fitted(columns, "common caller: " + frame_text(*object.caller));
  add_fitted(columns, held_text(object));
  for (const GrowthByOwner& growth : object.owners) add_owners(columns, growth);
  add_fitted(columns, "call sites");
  const std::vector<const LeakSite*> sites = leaks_of(leaks, index);
  for (std::size_t site = 0; site < std::min(sites.size(), kParts); ++site) {
    add_part(columns, sites[site]->growth.bytes_per_step.value, fitted_site(*sites[site]));
  }
  if (object.leaks > kParts)
    add_fitted(columns, fmt::format("{:>11}  ({} more)", "", format_count(object.leaks - kParts)));
}

std::string leaks_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"per step", "95% interval", "blocks per step", "growing steps", "device"});
  for (std::size_t index = 0; index < leaks.objects.size(); ++index) {
    const LeakObject& object = leaks.objects[index];
    const Growth& growth = object.growth;
    columns.add({rate_text(growth.bytes_per_step.value),
                 fmt::format("{} to {}", rate_text(growth.bytes_per_step.low), rate_text(growth.bytes_per_step.high)),
                 growth.kind == GrowthKind::replaced ? "replaced" : fmt::format("{:.2f}", growth.blocks_per_step),
                 fmt::format("{} of {}", format_count(growth.grown_steps), format_count(growth.analyzed_steps)),
                 to_string(object.device)});
    if (growth.every_steps != 0) {
      add_fitted(columns, step_rate_text(growth.bytes_per_step.value, growth.every_steps));
    }
    if (object.kind != LeakObjectKind::call_site) {
      add_object(columns, leaks, index);
      continue;
    }
    for (const LeakSite* site : leaks_of(leaks, index)) {
      columns.add_below(fitted_site(*site));
      add_fitted(columns, held_text(*site));
      if (object.perhaps_input) add_fitted(columns, kPerhapsInput);
    }
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.object_count > leaks.objects.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(leaks.object_count - leaks.objects.size()));
  }
  return text;
}

std::string owners_table(const DeviceOwners& owners, const Terminal& terminal) {
  const GrowthByOwner& growth = owners.growth;
  Columns columns({"per step", "held at end", "blocks", std::string(name_in(kOwnerKindNames, growth.kind))});
  const auto add = [&](const OwnedGrowth& row, FittedText what) {
    columns.add({rate_text(row.bytes_per_step), format_bytes(row.held_bytes), format_count(row.held_blocks)},
                std::move(what));
  };
  for (const OwnedGrowth& row : growth.rows) {
    add(row, [text = owner_text(row.owner)](std::size_t width) { return fit(text, width); });
  }
  if (growth.other_rows != 0) {
    add(growth.other, [&](std::size_t width) {
      return fit(fmt::format("({} more; --top 0 lists all)", format_count(growth.other_rows)), width);
    });
  }
  const std::string title =
      fmt::format("{}: leaks by {}", to_string(owners.device), name_in(kOwnerKindNames, growth.kind));
  return "\n" + paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
}

std::string growths_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"held at end", "reason", "device", "stack"});
  for (const LeakSite& site : leaks.non_leak_growth) {
    columns.add({format_bytes(site.held_bytes), growth_text(site.growth), to_string(site.device)}, fitted_site(site));
  }
  std::string text = columns.text(terminal, 2);
  if (leaks.non_leak_growth_count > leaks.non_leak_growth.size()) {
    text += fmt::format("  ({} more; --top 0 lists all)\n",
                        format_count(leaks.non_leak_growth_count - leaks.non_leak_growth.size()));
  }
  return text;
}

std::string kept_table(const Leaks& leaks, const Terminal& terminal) {
  Columns columns({"at most", "blocks", "of steps", "freed", "device", "stack"});
  for (const KeptSite& site : leaks.kept_over_steps) {
    columns.add({format_bytes(site.bytes), format_count(site.blocks), format_count(site.steps),
                 fmt::format("{} times", format_count(site.times)), to_string(site.device)},
                fitted_with_callers(site.stack));
  }
  std::string text = paint(terminal, Tone::heading, kKeptOverSteps) + "\n" + columns.text(terminal, 2);
  const std::uint64_t more = leaks.kept_over_steps_count - leaks.kept_over_steps.size();
  if (more != 0) text += fmt::format("  ({} more; --top 0 lists all)\n", format_count(more));
  return text;
}

}  // namespace

std::string leaks_text(const Leaks& leaks, const Terminal& terminal) {
  std::string text;
  for (const HostGrowth& growth : leaks.host_growth) {
    text +=
        fmt::format("{}\n  {}\n", paint(terminal, Tone::warning, host_growth_text(growth)), host_growth_causes(growth));
  }
  const Tone tone = leaks.verdict == LeakVerdict::leak ? Tone::warning : Tone::heading;
  const std::string verdict = paint(terminal, tone, leak_verdict(leaks)) + "\n" + leak_fixes_text(leaks);
  // The host's growth is often that of what leaks: without a leak it is the finding.
  text = leaks.verdict == LeakVerdict::leak ? verdict + text : text + verdict;
  if (!leaks.objects.empty()) text += leaks_table(leaks, terminal);
  if (const std::string small = small_leaks_text(leaks); !small.empty()) text += fmt::format("  ({})\n", small);
  if (!leaks.kept_over_steps.empty()) text += kept_table(leaks, terminal);
  text += leak_steps(leaks);
  for (const DeviceOwners& owners : leaks.owners) {
    if (!owners.growth.rows.empty()) text += owners_table(owners, terminal);
  }
  if (!leaks.non_leak_growth.empty()) {
    text += "\n" + paint(terminal, Tone::heading, "Growth that is not a leak") + "\n";
    text += growths_table(leaks, terminal);
  }
  return text + quality_hint(leaks.recording, terminal);
}

std::string to_text(const Leaks& leaks, const Terminal& terminal) {
  std::string text = leaks_text(leaks, terminal);
  if (!leaks.kept_over_steps.empty()) {
    return text +
           next_text(leaks.recording, "patterns", "what the peak would be without what is kept over steps", terminal);
  }
  if (leaks.verdict != LeakVerdict::leak) return text;
  if (const auto command = find_holders_command(leaks)) {
    const bool planned = !leaks.recording.simulated_gpu.empty();
    return text + next_command(*command,
                               planned ? "on a machine with a GPU: names what holds this memory"
                                       : "runs it again and names what holds this memory",
                               terminal);
  }
  return text + next_text(leaks.recording, "report", "a page with the growth over time", terminal);
}

}  // namespace tidemark
