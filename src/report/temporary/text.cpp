#include "report/common/text.h"

#include <fmt/format.h>

#include <optional>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"
#include "report/patterns/text.h"

namespace tidemark {
namespace {

std::string definition(std::uint64_t within) {
  if (within == 0) return "freed before the next allocation on the same device";
  if (within == 1) return "freed after at most 1 other allocation on the same device";
  return fmt::format("freed after at most {} other allocations on the same device", format_count(within));
}

std::string avoidable_peak(const TemporaryDevice& device) {
  const std::uint64_t saving = device.avoidable_peak_bytes();
  const std::string text = avoidable_peak_text(saving, device.totals.peak_allocated_bytes);
  return saving == 0 ? text : text + ", if all other allocations stay the same";
}

FittedText fitted_key(const TemporaryRow& row) {
  if (!row.owner) return fitted_with_callers(row.stack);
  return [text = owner_text(*row.owner)](std::size_t width) { return fit(text, width); };
}

std::string rows_text(const TemporaryDevice& device, std::optional<OwnerKind> by, const Terminal& terminal) {
  Columns columns(
      {"total", "share", "allocations", "largest", by ? std::string(name_in(kOwnerKindNames, *by)) : "stack"});
  for (const TemporaryRow& row : device.rows) {
    columns.add(
        {format_bytes(row.bytes), share_text(row.share), format_count(row.count), format_bytes(row.largest_bytes)},
        fitted_key(row));
  }
  if (device.other_rows != 0) {
    columns.add({format_bytes(device.other_bytes), "", format_count(device.other_count), "",
                 fmt::format("({} more; --top 0 lists all)", format_count(device.other_rows))});
  }
  return "\n" + columns.text(terminal, 2);
}

std::string device_text(const TemporaryDevice& device, const Temporary& temporary, const Terminal& terminal) {
  const DeviceSummary& totals = device.totals;
  if (!totals.peak_allocated_at_ns) return nothing_allocated_text(totals.device) + "\n";
  std::string text = paint(terminal, Tone::heading, to_string(totals.device)) + "\n";
  text += fact("temporary", fmt::format("{} of {} allocations: {}", format_count(device.count),
                                        format_count(totals.allocation_count), definition(temporary.within)));
  text += fact("total allocated", fmt::format("{} of {} ({})", format_bytes(device.bytes),
                                              format_bytes(totals.total_bytes_allocated), share_text(device.share)));
  text += fact("peak allocated", peak_text(totals.peak_allocated_bytes, totals.peak_allocated_at_ns));
  text += fact("reduced peak", peak_text(device.reduced_peak_bytes, device.reduced_peak_at_ns));
  text += fact("avoidable peak", avoidable_peak(device));
  return device.count == 0 ? text : text + rows_text(device, temporary.by, terminal);
}

}  // namespace

std::string to_text(const Temporary& temporary, const Terminal& terminal) {
  std::string text = join_devices(
      temporary.devices, [&](const TemporaryDevice& device) { return device_text(device, temporary, terminal); });
  if (temporary.devices.empty()) text += no_events_text(temporary.recording);
  return text + quality_hint(temporary.recording, terminal);
}

}  // namespace tidemark
