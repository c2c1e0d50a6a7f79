#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

constexpr const char* kUnknown = "n/a";

/// "+33.3%"; "n/a" of a change from nothing.
std::string relative_text(std::int64_t change, std::uint64_t from) {
  if (change == 0) return difference_text(0.0);
  return difference_text(from == 0 ? std::nullopt
                                   : std::optional(static_cast<double>(change) / static_cast<double>(from)));
}

std::string recording_line(const char* name, const RecordingInfo& recording) {
  constexpr std::size_t kCommandWidth = 60;
  const bool snapshot = recording.source == SourceKind::pytorch_snapshot;
  const std::string& command = recording.process.command_line;
  return fmt::format("{}  {}: {}, {}, {} {}\n", name, printable(recording.path),
                     !command.empty() ? shown(command, kCommandWidth)
                     : snapshot       ? "PyTorch memory snapshot"
                                      : "recording",
                     format_duration_ns(recording.duration_ns), format_count(recording.event_count),
                     recording.event_count == 1 ? "event" : "events");
}

// The name of a command's Python script, or of its program; empty if unknown.
std::string script_of(const std::vector<std::string>& words) {
  const auto script = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  if (words.empty()) return {};
  return std::filesystem::path(script == words.end() ? words.front() : *script).filename().string();
}

std::string words_only_in(const std::vector<std::string>& words, const std::vector<std::string>& other) {
  constexpr std::size_t kWordsWidth = 40;
  std::string text;
  for (const std::string& word : words) {
    if (std::ranges::find(other, word) == other.end()) text += (text.empty() ? "" : " ") + word;
  }
  return shown(text, kWordsWidth);
}

// Arguments are often the reason of a change; different programs are often a mistake.
std::string commands_line(const RecordingInfo& a, const RecordingInfo& b, const Terminal& terminal) {
  const std::vector<std::string> in_a = command_words(a);
  const std::vector<std::string> in_b = command_words(b);
  if (in_a.empty() || in_b.empty() || in_a == in_b) return {};
  if (script_of(in_a) != script_of(in_b)) {
    return paint(terminal, Tone::warning,
                 fmt::format("A and B are recordings of different programs: {} and {}", shown(script_of(in_a)),
                             shown(script_of(in_b)))) +
           "\n";
  }
  const std::string only_a = words_only_in(in_a, in_b);
  const std::string only_b = words_only_in(in_b, in_a);
  if (only_a.empty() && only_b.empty()) return "   arguments: the same, in another order\n";
  if (only_a.empty() || only_b.empty()) {
    return fmt::format("   arguments: {} only in {}\n", only_a.empty() ? only_b : only_a, only_a.empty() ? "B" : "A");
  }
  return fmt::format("   arguments: {} in A, {} in B\n", only_a, only_b);
}

std::string settings_line(const RecordingInfo& a, const RecordingInfo& b) {
  if (a.allocator_settings == b.allocator_settings) return {};
  const auto text = [](const std::optional<std::string>& settings) {
    if (!settings) return std::string(kUnknown);
    return settings->empty() ? std::string("default") : shown(*settings);
  };
  return fmt::format("   allocator settings: {} in A, {} in B\n", text(a.allocator_settings),
                     text(b.allocator_settings));
}

std::string matching_line(const StackMatching& matching) {
  if (!matching.python_frames && !matching.native_frames) {
    return "   stacks cannot be matched: A and B have no frames of the same kind\n";
  }
  std::string text = "   stacks matched by function and file";
  if (matching.lines) text = "   stacks matched by function, file and line";
  if (!matching.native_frames) text += "; Python frames only";
  if (!matching.python_frames) text += "; native frames only";
  return text + "\n";
}

void add_total(Columns& columns, const char* name, const ComparedTotal& total,
               std::string (*format)(std::uint64_t) = format_bytes) {
  if (!total.a && !total.b) return;
  const auto value = [&](const std::optional<std::uint64_t>& side) { return side ? format(*side) : kUnknown; };
  const auto change = total.change();
  const std::string share = change ? relative_text(*change, *total.a) : kUnknown;
  columns.add({value(total.a), value(total.b), change ? signed_text(*change, format) : kUnknown, share, name});
}

std::string totals_text(const ComparedDevice& device, const Terminal& terminal) {
  Columns columns({"A", "B", "change", "relative", "metric"});
  add_total(columns, "peak allocated", device.peak_allocated);
  add_total(columns, "peak reserved", device.peak_reserved);
  add_total(columns, "peak active", device.peak_active);
  add_total(columns, "allocations", device.allocations, format_count);
  add_total(columns, "total allocated", device.traffic);
  return columns.text(terminal, 2);
}

// What holds more or less, in a few lines: stacks and layers follow.
std::string categories_text(const ComparedDevice& device, const Terminal& terminal) {
  Columns columns({"A", "B", "change", "relative", "category at the peak"});
  for (const ComparedCategory& category : device.categories) {
    const std::int64_t change = category.bytes.change();
    columns.add({format_bytes(category.bytes.a), format_bytes(category.bytes.b), signed_bytes(change),
                 relative_text(change, category.bytes.a), category_text(category.category)});
  }
  return device.categories.empty() ? std::string() : columns.text(terminal, 2) + "\n";
}

std::string group_text(const ChangeGroup& group, const char* word) {
  if (group.stacks == 0) return {};
  return fmt::format("{} {} ({}), ", format_count(group.stacks), word, signed_bytes(group.bytes));
}

std::string groups_line(const ComparedDevice& device, CompareBy by, std::optional<OwnerKind> owners) {
  return fmt::format("  {} {}: {}{}{}{}{} unchanged\n", owners ? plural_of(*owners) : "stacks",
                     by == CompareBy::peak ? "at the peak" : "by total allocated", group_text(device.added, "added"),
                     group_text(device.removed, "removed"), group_text(device.grew, "grew"),
                     group_text(device.shrank, "shrank"), format_count(device.unchanged.stacks));
}

/// "1 → 3", or the one number.
std::string count_text(const ComparedValue& count) {
  if (count.a == count.b) return format_count(count.a);
  return fmt::format("{} \xE2\x86\x92 {}", format_count(count.a), format_count(count.b));
}

// `all`: the rows are of all blocks.
std::string rows_text(const ComparedDevice& device, CompareBy by, bool all, const Terminal& terminal) {
  const bool peak = by == CompareBy::peak;
  Columns columns({"change", "A", "B", peak ? "blocks" : "allocations", "status",
                   holder_words(device.rows, &ComparedStack::stack, "stack").one});
  for (const ComparedStack& row : device.rows) {
    const ComparedValue& bytes = peak ? row.peak_bytes : row.traffic_bytes;
    columns.add({signed_bytes(bytes.change()), format_bytes(bytes.a), format_bytes(bytes.b),
                 count_text(peak ? row.peak_blocks : row.allocations), std::string(name_of(row.kind))},
                fitted_with_callers(row.stack));
  }
  if (device.other_rows != 0) {
    columns.add({signed_bytes(device.other_change), "", "", "", "",
                 fmt::format("({} more; --top 0 lists all)", format_count(device.other_rows))});
  }
  const ComparedTotal& unrecorded = device.unrecorded_at_peak;
  const bool show_unrecorded = all && peak && unrecorded.change().value_or(0) != 0;
  if (show_unrecorded) {
    columns.add({signed_bytes(*unrecorded.change()), format_bytes(*unrecorded.a), format_bytes(*unrecorded.b), "", "",
                 "(not recorded)"});
  }
  return device.rows.empty() && !show_unrecorded ? std::string() : columns.text(terminal, 2);
}

std::string device_text(const ComparedDevice& device, const Comparison& comparison, const Terminal& terminal) {
  const std::string name = to_string(device.device);
  std::string text = "\n" + paint(terminal, Tone::heading, name) + "\n";
  if (comparison.owners != OwnerKind::category) text += categories_text(device, terminal);  // else they are the rows
  text += totals_text(device, terminal) + "\n";
  if (!device.in_a || !device.in_b) {
    const RecordingInfo& recording = device.in_a ? comparison.a : comparison.b;
    return text + fmt::format("  only in {}: `tidemark table {} --device {}` lists its stacks\n",
                              device.in_a ? "A" : "B", printable(recording.path), name);
  }
  return text + groups_line(device, comparison.by, comparison.owners) +
         rows_text(device, comparison.by, comparison.a.chosen_blocks.empty(), terminal);
}

// "the peak grew from 36.0 MiB to 48.0 MiB allocated (+12.0 MiB, +33.3%)".
std::string change_text(const ComparedTotal& peak, const char* what) {
  const std::int64_t change = peak.change().value_or(0);
  if (change == 0) return fmt::format("the same peak, {} {}", format_bytes(*peak.a), what);
  const std::string share = *peak.a == 0 ? "" : ", " + relative_text(change, *peak.a);
  return fmt::format("the peak {} from {} to {} {} ({}{})", change > 0 ? "grew" : "shrank", format_bytes(*peak.a),
                     format_bytes(*peak.b), what, signed_bytes(change), share);
}

// The call sites that changed most, in the direction of the peak.
std::string largest_changes(const ComparedDevice& device, const Terminal& terminal) {
  constexpr std::size_t kMost = 2;
  const std::int64_t total = device.peak_allocated.change().value_or(0);
  std::vector<const ComparedStack*> rows;
  for (const ComparedStack& row : device.rows) {
    const std::int64_t change = row.peak_bytes.change();
    if (total != 0 && (change < 0) == (total < 0) && change != 0) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const ComparedStack* row) { return magnitude(row->peak_bytes.change()); });
  std::string text;
  for (std::size_t index = 0; index < std::min(kMost, rows.size()); ++index) {
    const std::string change = fmt::format("  {:>10}  ", signed_bytes(rows[index]->peak_bytes.change()));
    const std::size_t width = terminal.width == 0 ? 0 : terminal.width - std::min(terminal.width - 1, change.size());
    text += change + stack_text(rows[index]->stack, width) + "\n";
  }
  return text;
}

// "  activation -8.4 GiB, gradient +4.2 GiB": if a peak moved to another phase of the step, categories show it.
std::string largest_categories(const ComparedDevice& device) {
  constexpr std::size_t kMost = 3;
  std::vector<const ComparedCategory*> changed;
  for (const ComparedCategory& category : device.categories) {
    if (category.bytes.change() != 0) changed.push_back(&category);
  }
  if (changed.size() < 2) return {};
  std::ranges::stable_sort(changed, std::greater<>(),
                           [](const ComparedCategory* category) { return magnitude(category->bytes.change()); });
  if (changed.size() > kMost) changed.resize(kMost);
  std::string text;
  for (const ComparedCategory* category : changed) {
    text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", category_text(category->category),
                        signed_bytes(category->bytes.change()));
  }
  return text + "\n";
}

// Small changes of the host's tensors beside a GPU are no result of a comparison.
bool is_worth_a_verdict(const ComparedDevice& device, std::size_t devices) {
  constexpr std::uint64_t kLeastOnHost = std::uint64_t{1} << 20;
  const bool is_host = device.device.type == DeviceType::cpu;
  return devices == 1 || !is_host || magnitude(device.peak_allocated.change().value_or(0)) >= kLeastOnHost;
}

// Allocated memory, and reserved memory before it if that changed by more.
std::string verdict_line(const ComparedDevice& device, const Terminal& terminal) {
  const ComparedTotal& allocated = device.peak_allocated;
  const ComparedTotal& reserved = device.peak_reserved;
  if (!allocated.a || !allocated.b) return {};
  std::string text = change_text(allocated, "allocated");
  const auto size = [](const ComparedTotal& total) { return magnitude(total.change().value_or(0)); };
  if (reserved.a && reserved.b && size(reserved) > size(allocated)) {
    text = fmt::format("{}; allocated {} to {} ({})", change_text(reserved, "reserved"), format_bytes(*allocated.a),
                       format_bytes(*allocated.b), signed_bytes(allocated.change().value_or(0)));
  }
  return fmt::format("{}: {}\n", paint(terminal, Tone::heading, to_string(device.device)), text) +
         largest_categories(device) + largest_changes(device, terminal);
}

std::string missing_events(const char* name, const RecordingInfo& recording, const Terminal& terminal) {
  if (recording.quality.complete) return {};
  const std::string text = fmt::format("Events are missing in {}: see the data quality in `tidemark summary`.", name);
  return paint(terminal, Tone::warning, text) + "\n";
}

}  // namespace

std::string to_text(const Comparison& comparison, const Terminal& terminal) {
  std::string text;
  for (const ComparedDevice& device : comparison.devices) {
    if (is_worth_a_verdict(device, comparison.devices.size())) text += verdict_line(device, terminal);
  }
  if (!text.empty()) text += "\n";
  text += recording_line("A", comparison.a) + recording_line("B", comparison.b);
  text += commands_line(comparison.a, comparison.b, terminal) + settings_line(comparison.a, comparison.b);
  const bool has_both = std::any_of(comparison.devices.begin(), comparison.devices.end(),
                                    [](const ComparedDevice& device) { return device.in_a && device.in_b; });
  if (has_both && !comparison.owners) text += matching_line(comparison.matching);
  text += chosen_blocks_text(comparison.a, true);
  for (const ComparedDevice& device : comparison.devices) text += device_text(device, comparison, terminal);
  if (comparison.devices.empty()) text += "\nNo events recorded in A or B.\n";
  text += missing_events("A", comparison.a, terminal) + missing_events("B", comparison.b, terminal);
  return text + next_text(comparison.b, "summary", "what holds the peak of B", terminal);
}

std::string budget_text(const Comparison& comparison) {
  std::string text;
  for (const OverBudget& over : comparison.over_budget) {
    if (!text.empty()) text += "; ";
    const std::uint64_t before = over.a.value_or(0);
    std::string share;
    if (before != 0) {
      share = fmt::format(" ({:.1f}%)", static_cast<double>(over.b - before) / static_cast<double>(before) * 100);
    }
    text +=
        fmt::format("{}: peak allocated {} in B exceeds {} in A by {}{}", to_string(over.device), format_bytes(over.b),
                    over.a ? format_bytes(before) : "n/a", format_bytes(over.b - before), share);
  }
  if (text.empty()) return text;
  return text + fmt::format("; --fail-over limit: {}", printable(comparison.budget->text));
}

}  // namespace tidemark
