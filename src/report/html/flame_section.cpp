#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/units.h"
#include "report/html/markup.h"
#include "report/html/sections.h"
#include "report/words/frame_text.h"
#include "report/words/printable.h"
#include "report/words/recording.h"

namespace tidemark::html {
namespace {

constexpr double kRow = 19;  // pixels

const char* colour_of(const FrameName& frame) {
  if (frame.kind != Location::Kind::python) return "native";
  return is_framework_file(frame.file) ? "torch" : "own";
}

std::string name_of(const FrameName& frame) {
  return frame.kind == Location::Kind::python ? local_name(frame.function) : short_function(frame.function);
}

// Boxes whose names would not fit even on a wide screen, or not on a phone.
const char* narrowness(double share) {
  return share < 0.02 ? " s" : share < 0.09 ? " m" : "";
}

class Icicle {
 public:
  Icicle(std::string& out, const TreeSection& section) : out_(out), section_(section) {}

  void draw() {
    std::uint32_t deepest = 0;
    for (const TreeNode& node : section_.nodes) deepest = std::max(deepest, node.depth + 1);
    fmt::format_to(std::back_inserter(out_),
                   "<div class=\"flame\"><svg role=\"img\" aria-label=\"Flame graph of {}\" width=\"100%\" "
                   "height=\"{:g}\">\n",
                   to_string(section_.device), (deepest + 1) * kRow);
    box(0, 0, section_.allocated_bytes, "root", fmt::format("{}: everything allocated", to_string(section_.device)),
        fmt::format("{}, {}", to_string(section_.device), format_bytes(section_.allocated_bytes)), section_.blocks);
    for (const TreeNode& node : section_.nodes) {
      begins_.resize(node.depth + 2, 0);  // of what comes next at each depth
      const double begin = begins_[node.depth];
      begins_[node.depth] += share(node.bytes);
      begins_[node.depth + 1] = begin;
      box(begin, node.depth + 1, node.bytes, colour_of(node.frame), escaped(frame_text(node.frame)),
          escaped(name_of(node.frame)), node.blocks);
    }
    double begin = begins_.empty() ? 0 : begins_[0];
    begin += share(section_.hidden.bytes);
    if (section_.no_stack_bytes != 0) {
      box(begin, 1, section_.no_stack_bytes, "nothing", "(no stack)", "(no stack)", section_.no_stack_blocks);
      begin += share(section_.no_stack_bytes);
    }
    if (section_.unrecorded_bytes != 0) {
      box(begin, 1, section_.unrecorded_bytes, "nothing", "(not recorded)", "(not recorded)", 0);
    }
    out_ += "</svg></div>\n";
  }

 private:
  [[nodiscard]] double share(std::uint64_t bytes) const { return ratio(bytes, section_.allocated_bytes); }

  // `title` and `name` are HTML.
  void box(double begin, std::uint32_t depth, std::uint64_t bytes, const char* colour, std::string_view title,
           std::string_view name, std::uint64_t blocks) {
    const double width = share(bytes);
    fmt::format_to(std::back_inserter(out_),
                   "<svg class=\"{}{}\" x=\"{}\" y=\"{:g}\" width=\"{}\" height=\"{:g}\"><title>{}\n{}, {}{}</title>"
                   "<rect width=\"100%\" height=\"100%\"/><text x=\"4\" y=\"13\">{}</text></svg>\n",
                   colour, narrowness(width), percent(begin), depth * kRow, percent(width), kRow - 1, title,
                   format_bytes(bytes), share_text(width),
                   blocks == 0 ? "" : fmt::format(", blocks: {}", format_count(blocks)), name);
  }

  std::string& out_;
  const TreeSection& section_;
  std::vector<double> begins_;
};

bool any_native(const TreeSection& section) {
  return std::any_of(section.nodes.begin(), section.nodes.end(),
                     [](const TreeNode& node) { return node.frame.kind != Location::Kind::python; });
}

}  // namespace

void add_flame_graph(std::string& out, const Report& report, const std::string& id) {
  const auto draws = [](const TreeSection& section) { return !section.nodes.empty(); };
  if (std::none_of(report.tree.sections.begin(), report.tree.sections.end(), draws)) return;
  open_section(out, id + "calls", "Who asked for it",
               "The same memory as a flame graph: callers above, what they call below, and the wider a box, the more "
               "memory was allocated below it. From left to right is not time.");
  for (const TreeSection& section : report.tree.sections) {
    if (!draws(section)) continue;
    add_device_heading(out, section.device,
                       fmt::format("{} allocated {}", format_bytes(section.allocated_bytes), at_text(section.at_ns)));
    std::vector<Key> keys = {{"own", "Python code"}, {"torch", "Python code of PyTorch itself"}};
    if (any_native(section)) keys.push_back({"native", "native code"});
    add_legend(out, keys);
    Icicle(out, section).draw();
    std::uint64_t hidden = section.hidden.count;
    for (const TreeNode& node : section.nodes) hidden += node.hidden.count;
    if (hidden != 0) {
      add_remark(out,
                 fmt::format("Left out: {} calls that hold too little to be seen. <code>tidemark tree</code> lists "
                             "what you ask for.",
                             format_count(hidden)));
    }
  }
  out += kSectionEnd;
}

}  // namespace tidemark::html
