#include "report/common/text.h"

#include <fmt/format.h>

#include <variant>

#include "base/units.h"
#include "query/words/attribution.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

std::string heading_of(GroupBy by) {
  return by == GroupBy::size ? "block size" : std::string(name_of(by));
}

std::string key_text(const BlockSize& size) {
  return exact_text(size.bytes);
}
std::string key_text(const DeviceAt& device) {
  return to_string(device.device) + " " + at_text(device.at_ns);
}
std::string key_text(const ThreadInfo& thread) {
  if (!thread.tid) return "(unknown thread)";
  const std::string name = thread.name.empty() ? "(no name)" : shown(thread.name);
  return fmt::format("{} (tid {})", name, *thread.tid);
}
std::string key_text(const StreamHandle& stream) {
  return stream.handle == 0 ? "default stream" : fmt::format("0x{:x}", stream.handle);
}
std::string key_text(const PoolId& pool) {
  return pool == PoolId{} ? "default pool" : fmt::format("private pool ({}, {})", pool.first, pool.second);
}

std::string key_text(const BlockAnnotation& annotation) {
  return annotation.name ? shown(*annotation.name) : "(none)";
}

std::string key_text(const BlockOwner& owner) {
  return owner_text(owner);
}

FittedText fitted_key(const NamedStack& stack) {
  return fitted_with_callers(stack);
}
template <typename Key>
FittedText fitted_key(const Key& key) {
  return [text = key_text(key)](std::size_t width) { return fit(text, width); };
}

// "private pool (0, 1), most by capture (train.py:40)".
FittedText fitted_row(const TableRow& row) {
  const PoolId* pool = std::get_if<PoolId>(&row.key);
  if (pool == nullptr || *pool == PoolId{} || !row.most_by) {
    return std::visit([](const auto& key) { return fitted_key(key); }, row.key);
  }
  return [text = key_text(*pool) + ", most by ", stack = *row.most_by](std::size_t width) {
    return text + stack_text(stack, width == 0 ? 0 : width - std::min(width - 1, text.size()));
  };
}

std::string section_text(const TableSection& section, GroupBy by, const Terminal& terminal) {
  std::string text;
  if (section.device) {
    if (section.rows.empty() && section.unrecorded_bytes == 0) {
      return nothing_allocated_text(section.device->device, section.device->at_ns) + "\n";
    }
    const std::string title = fmt::format("{} {}: {} allocated", to_string(section.device->device),
                                          at_text(section.device->at_ns), format_bytes(section.allocated_bytes));
    text = paint(terminal, Tone::heading, title) + "\n";
  }
  Columns columns({"bytes", "share", "blocks", heading_of(by)});
  for (const TableRow& row : section.rows) {
    std::vector<std::string> cells = {format_bytes(row.bytes), share_cell(row.share, terminal),
                                      format_count(row.blocks)};
    columns.add(std::move(cells), fitted_row(row));
  }
  if (section.other_rows != 0) {
    columns.add({format_bytes(section.other_bytes), "", format_count(section.other_blocks),
                 fmt::format("({} more; --top 0 lists all)", format_count(section.other_rows))});
  }
  if (section.unrecorded_bytes != 0) {
    columns.add({format_bytes(section.unrecorded_bytes), "", "", "(not recorded)"});
  }
  return text + columns.text(terminal, section.device ? 2 : 0);
}

}  // namespace

std::string to_text(const Table& table, const Terminal& terminal) {
  std::string text = join_devices(
      table.sections, [&](const TableSection& section) { return section_text(section, table.by, terminal); });
  if (table.sections.empty()) text += no_events_text(table.recording);
  text += quality_hint(table.recording, terminal);
  return text + next_text(table.recording, "patterns", "changes that would save memory", terminal);
}

}  // namespace tidemark
