#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/html/markup.h"
#include "report/html/sections.h"

namespace tidemark::html {
namespace {

void add_peak_row(std::string& out, std::uint64_t bytes, double share, std::string_view blocks, const NamedStack* stack,
                  std::string_view words) {
  fmt::format_to(std::back_inserter(out),
                 "<tr><td class=\"number\">{}</td><td class=\"bar\"><svg width=\"100%\" height=\"10\" "
                 "aria-hidden=\"true\"><rect width=\"{}\" height=\"10\"/></svg></td><td class=\"number\">{}</td>"
                 "<td class=\"number blocks\">{}</td><td class=\"stack\">",
                 format_bytes(bytes), percent(share), share_text(share), blocks);
  if (stack != nullptr) {
    add_stack(out, *stack);
  } else {
    out += words;
  }
  out += "</td></tr>\n";
}

void add_section(std::string& out, const TableSection& section) {
  if (section.allocated_bytes == 0) return;
  add_device_heading(
      out, section.device->device,
      fmt::format("{} allocated {}", format_bytes(section.allocated_bytes), at_text(section.device->at_ns)));
  out +=
      "<table class=\"peak\"><thead><tr><th class=\"number\">held</th><th class=\"bar\"></th>"
      "<th class=\"number\">share</th><th class=\"number blocks\">blocks</th><th>allocated "
      "by</th></tr></thead><tbody>\n";
  for (const TableRow& row : section.rows) {
    add_peak_row(out, row.bytes, row.share, format_count(row.blocks), std::get_if<NamedStack>(&row.key), {});
  }
  if (section.other_rows != 0) {
    add_peak_row(out, section.other_bytes, share_of(section.other_bytes, section.allocated_bytes).value_or(0),
                 format_count(section.other_blocks), nullptr,
                 fmt::format("<i>{} other stacks</i>", format_count(section.other_rows)));
  }
  if (section.unrecorded_bytes != 0) {
    add_peak_row(out, section.unrecorded_bytes, share_of(section.unrecorded_bytes, section.allocated_bytes).value_or(0),
                 "", nullptr,
                 "<i>not recorded</i>: allocated before the recording began, while it was paused, or lost");
  }
  out += "</tbody></table>\n";
}

}  // namespace

void add_peak(std::string& out, const PageContents& contents, const std::string& id) {
  const auto has_memory = [](const TableSection& section) { return section.allocated_bytes != 0; };
  if (std::none_of(contents.table.sections.begin(), contents.table.sections.end(), has_memory)) return;
  open_section(
      out, id + "peak", "Memory held at the peak",
      "By call stack: the blocks that were alive when the most memory was allocated. A row opens to all frames.");
  for (const TableSection& section : contents.table.sections) add_section(out, section);
  out += kSectionEnd;
}

}  // namespace tidemark::html
