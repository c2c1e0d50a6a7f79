#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analyze/usage/breakdown.h"
#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/csv.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string bytes_or_nothing(std::uint64_t bytes) {
  return bytes == 0 ? "" : format_bytes(bytes);
}

// A row for each owner, a column for each category.
std::string group_text(const BreakdownDevice& device, const BreakdownGroup& group, const Terminal& terminal) {
  std::vector<std::string> headings = {"bytes"};
  for (const CategoryBytes& category : device.categories) headings.push_back(category_text(category.category));
  headings.emplace_back(name_in(kOwnerKindNames, group.kind));
  Columns columns(std::move(headings));
  for (const BreakdownRow& row : group.rows) {
    std::vector<std::string> cells = {format_bytes(row.bytes)};
    for (const CategoryBytes& category : device.categories) {
      cells.push_back(bytes_or_nothing(row.bytes_of(category.category)));
    }
    columns.add(std::move(cells), [text = owner_text(row.owner)](std::size_t width) { return fit(text, width); });
  }
  if (group.other_rows != 0) {
    std::vector<std::string> cells = {format_bytes(group.other_bytes)};
    cells.resize(1 + device.categories.size());
    cells.push_back(fmt::format("({} more; --top 0 lists all)", format_count(group.other_rows)));
    columns.add(std::move(cells));
  }
  return columns.text(terminal, 2);
}

std::string device_text(const BreakdownDevice& device, const Terminal& terminal) {
  if (device.allocated_bytes == 0) return nothing_allocated_text(device.device, device.at_ns) + "\n";
  const std::string title = fmt::format("{} {}: {} allocated", to_string(device.device), at_text(device.at_ns),
                                        format_bytes(device.allocated_bytes));
  std::string text = paint(terminal, Tone::heading, title) + "\n" +
                     categories_text(device.categories, device.unrecorded_bytes, device.categories.size(), terminal);
  for (const BreakdownGroup& group : device.groups) {
    const bool first = &group == &device.groups.front();
    // Groups that were not requested are in JSON; phases are short.
    if (first || group.kind == OwnerKind::phase) text += "\n" + group_text(device, group, terminal);
  }
  return text;
}

}  // namespace

std::string category_bytes_text(const CategoryBytes& category) {
  return (category.confidence() == Confidence::estimated ? "~" : "") + format_bytes(category.bytes);
}

std::string categories_text(const std::vector<CategoryBytes>& categories, std::uint64_t unrecorded_bytes,
                            std::size_t most, const Terminal& terminal) {
  Columns columns({"bytes", "share", "blocks", "category"});
  const std::size_t shown = categories.size() <= most ? categories.size() : most - 1;
  for (const CategoryBytes& category : std::span(categories).first(shown)) {
    columns.add({category_bytes_text(category), share_cell(category.share, terminal), format_count(category.blocks),
                 category_text(category.category)});
  }
  std::uint64_t others = 0;
  for (const CategoryBytes& category : std::span(categories).subspan(shown)) others += category.bytes;
  if (shown != categories.size()) {
    columns.add({format_bytes(others), "", "", fmt::format("({} others)", format_count(categories.size() - shown))});
  }
  if (unrecorded_bytes != 0) columns.add({format_bytes(unrecorded_bytes), "", "", "(not recorded)"});
  return columns.text(terminal, 2);
}

std::string to_text(const Breakdown& breakdown, const Terminal& terminal) {
  std::string text =
      join_devices(breakdown.devices, [&](const BreakdownDevice& device) { return device_text(device, terminal); });
  if (breakdown.devices.empty()) text += no_events_text(breakdown.recording);
  return text + quality_hint(breakdown.recording, terminal);
}

std::string to_csv(std::span<const Breakdown> results) {
  const auto has_rows = [](const Breakdown& breakdown) {
    return !breakdown.devices.empty() && !breakdown.devices.front().groups.empty();
  };
  const auto first = std::find_if(results.begin(), results.end(), has_rows);
  const OwnerKind by = first == results.end() ? OwnerKind::component : first->devices.front().groups.front().kind;
  std::string text = fmt::format("file,rank,device,at_ns,{},category,phase,confidence,bytes,block_count\n",
                                 by == OwnerKind::category || by == OwnerKind::phase
                                     ? fmt::format("by_{}", name_in(kOwnerKindNames, by))
                                     : name_in(kOwnerKindNames, by));
  for (const Breakdown& breakdown : results) {
    for (const BreakdownDevice& device : breakdown.devices) {
      const std::string begin = fmt::format("{},{}{}", recording_fields(breakdown.recording), to_string(device.device),
                                            number_field(device.at_ns));
      if (device.groups.empty()) continue;
      const BreakdownGroup& group = device.groups.front();
      for (const BreakdownRow& row : group.rows) {
        for (const BreakdownCell& cell : row.cells) {
          text += fmt::format("{},{},{},{},{},{},{}\n", begin, csv_field(row.owner.name.value_or("")),
                              name_in(kCategoryNames, cell.category), name_in(kPhaseNames, cell.phase),
                              name_in(kConfidenceNames, cell.confidence), cell.bytes, cell.blocks);
        }
      }
      if (group.other_rows != 0) {
        text += fmt::format("{},(others),,,,{},{}\n", begin, group.other_bytes, group.other_blocks);
      }
      if (device.unrecorded_bytes != 0)
        text += fmt::format("{},(not recorded),,,,{},\n", begin, device.unrecorded_bytes);
    }
  }
  return text;
}

}  // namespace tidemark
