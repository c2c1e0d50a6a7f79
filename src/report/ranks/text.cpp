#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/usage/ranks.h"
#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

// The file if there is room for it.
std::string fit_name(const RankRow& row, std::size_t width) {
  const std::string name = rank_name(row);
  if (row.recording.source != SourceKind::recording) return fit(name, width);  // the file's name
  std::string with_file = fmt::format("{} ({})", name, printable(base_name(row.recording.path)));
  return width == 0 || display_width(with_file) <= width ? with_file : fit(name, width);
}

// Ranks on the GPU of another one.
std::string ranks_on_other_gpus(const RankComparison& ranks, const Terminal& terminal) {
  std::string text;
  for (const RankRow& row : ranks.rows) {
    for (const OtherGpu& other : row.other_gpus) {
      if (!other.rank) continue;
      const std::string what =
          fmt::format("rank {} allocates on {}, the device of rank {}: {} at its peak, and a CUDA context",
                      row.recording.process.rank.value_or(0), to_string(other.device), *other.rank,
                      format_bytes(other.peak_allocated_bytes));
      text += fmt::format("  {}\n", paint(terminal, Tone::warning, what));
      if (!other.stack.frames.empty()) text += fmt::format("      {}\n", stack_text(other.stack, terminal.width));
    }
  }
  if (text.empty()) return text;
  return text +
         "      usual cause: torch.load() without map_location, or no torch.cuda.set_device() before the first use\n";
}

std::string table_of_all(const RankComparison& ranks, const Terminal& terminal) {
  Columns columns({"allocated", "reserved", "used", "to median", "OOM", "process"});
  std::size_t incomplete = 0;
  for (const RankRow& row : ranks.rows) {
    columns.add(
        {format_bytes(row.peak_allocated_bytes), bytes_text(row.peak_reserved_bytes), bytes_text(row.device_used_bytes),
         difference_text(row.difference) + (row.outlier ? " outlier" : ""), row.out_of_memory ? "yes" : "no"},
        [&row](std::size_t width) { return fit_name(row, width); });
    if (!row.recording.quality.complete) ++incomplete;
  }
  const std::string title =
      fmt::format("{} recordings: the peak of the most used device of each", format_count(ranks.rows.size()));
  std::string text = paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
  for (const RankGroup& group : ranks.groups) {
    if (group.count > 1) text += "  " + group_text(group) + "\n";
  }
  text += ranks_on_other_gpus(ranks, terminal);
  if (incomplete != 0) {
    text += "  " +
            paint(terminal, Tone::warning,
                  fmt::format("events are missing in {} of {} recordings", format_count(incomplete),
                              format_count(ranks.rows.size()))) +
            "\n";
  }
  return text;
}

std::string how_to_see_more(const RankComparison& ranks) {
  const bool has_rank = std::any_of(ranks.rows.begin(), ranks.rows.end(),
                                    [](const RankRow& row) { return row.recording.process.rank.has_value(); });
  return has_rank ? "\n--rank N shows the details of one rank.\n" : "\nName one file to see its details.\n";
}

}  // namespace

std::string rank_name(const RankRow& row) {
  const std::string name = process_name(row.recording, row.child);
  return row.device ? fmt::format("{}, {}", name, to_string(*row.device)) : name;
}

std::string difference_text(const std::optional<double>& difference) {
  if (!difference) return "n/a";
  return *difference == 0 ? "0.0%" : fmt::format("{:+.1f}%", *difference * 100);
}

std::string group_text(const RankGroup& group) {
  const std::string device = to_string(Device{group.type, 0});
  std::string text =
      fmt::format("{}{}: median of {} peaks {}", device.substr(0, device.find(':')), group.children ? ", children" : "",
                  format_count(group.count), format_bytes(group.median_bytes));
  if (group.has_outliers()) text += fmt::format("; outliers beyond \xC2\xB1{}", format_bytes(group.limit_bytes));
  return text;
}

std::string to_text(const RankComparison& ranks, const std::vector<const Summary*>& details, const Terminal& terminal) {
  std::string text = table_of_all(ranks, terminal);
  for (const Summary* summary : details) text += "\n" + to_text(*summary, terminal);
  return details.empty() ? text + how_to_see_more(ranks) : text;
}

}  // namespace tidemark
