#include "report/common/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "report/common/columns.h"
#include "report/common/text_parts.h"

namespace tidemark {
namespace {

// Draws the flat list of nodes as a tree. A frame that is the only one below its caller stays in the caller's column,
// so that only branches move to the right: Python stacks of 40 frames still fit a terminal.
class TreeDrawing {
 public:
  TreeDrawing(const TreeSection& section, Columns& columns)
      : section_(section), columns_(columns), below_(section.nodes.size()) {
    std::vector<std::size_t> path;
    for (std::size_t index = 0; index < section.nodes.size(); ++index) {
      path.resize(section.nodes[index].depth);
      (path.empty() ? roots_ : below_[path.back()]).push_back(index);
      path.push_back(index);
    }
  }

  void draw() { draw_level(roots_, section_.hidden, {}); }

 private:
  // As deep as TreeOptions::kMaxDepth.
  void draw_level(const std::vector<std::size_t>& nodes, const HiddenNodes& hidden, const std::string& prefix) {
    const std::size_t lines = nodes.size() + (hidden.count != 0 ? 1 : 0);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      const TreeNode& node = section_.nodes[nodes[index]];
      const bool last = index + 1 == lines;
      columns_.add({format_bytes(node.bytes), share_text(node.share), format_count(node.blocks)},
                   [begin = prefix + branch(lines, last), &node](std::size_t width) {
                     return begin + fit_frame(node.frame, room_after(begin, width));
                   });
      draw_level(below_[nodes[index]], node.hidden, prefix + below_branch(lines, last));
    }
    if (hidden.count == 0) return;
    columns_.add({format_bytes(hidden.bytes), "", format_count(hidden.blocks),
                  prefix + branch(lines, true) + fmt::format("({} more)", format_count(hidden.count))});
  }

  // However deep the tree, the function is seen.
  static std::size_t room_after(const std::string& begin, std::size_t width) {
    constexpr std::size_t kNarrowest = 24;
    if (width == 0) return 0;
    return std::max(kNarrowest, width - std::min(width, display_width(begin)));
  }

  static const char* branch(std::size_t lines, bool last) {
    if (lines == 1) return "";
    return last ? "\xE2\x94\x94\xE2\x94\x80 " : "\xE2\x94\x9C\xE2\x94\x80 ";  // └─, ├─
  }
  static const char* below_branch(std::size_t lines, bool last) {
    if (lines == 1) return "";
    return last ? "   " : "\xE2\x94\x82  ";  // │
  }

  const TreeSection& section_;
  Columns& columns_;
  std::vector<std::size_t> roots_;
  std::vector<std::vector<std::size_t>> below_;
};

std::string section_text(const TreeSection& section, const Terminal& terminal) {
  if (section.blocks == 0 && section.unrecorded_bytes == 0) {
    return nothing_allocated_text(section.device, section.at_ns) + "\n";
  }
  const std::string title =
      fmt::format("{} {}: {} allocated, live blocks: {}", to_string(section.device), at_text(section.at_ns),
                  format_bytes(section.allocated_bytes), format_count(section.blocks));
  Columns columns({"bytes", "share", "blocks", "call tree, outermost caller first"});
  TreeDrawing(section, columns).draw();
  if (section.no_stack_blocks != 0) {
    columns.add({format_bytes(section.no_stack_bytes), "", format_count(section.no_stack_blocks), "(no stack)"});
  }
  if (section.unrecorded_bytes != 0) {
    columns.add({format_bytes(section.unrecorded_bytes), "", "", "(not recorded)"});
  }
  return paint(terminal, Tone::heading, title) + "\n" + columns.text(terminal, 2);
}

}  // namespace

std::string to_text(const Tree& tree, const Terminal& terminal) {
  std::string text =
      join_devices(tree.sections, [&](const TreeSection& section) { return section_text(section, terminal); });
  if (tree.sections.empty()) text += no_events_text(tree.recording);
  return text + quality_hint(tree.recording, terminal);
}

}  // namespace tidemark
