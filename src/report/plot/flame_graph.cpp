#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/common/stack_names.h"
#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/recording_text.h"
#include "report/plot/plots.h"

namespace tidemark {
namespace {

using Sample = PlotKey::Sample;

constexpr double kFrameRow = 19;

Role role_of(const FrameName& frame) {
  if (frame.kind != Location::Kind::python) return Role::native;
  return is_project_code(frame) ? Role::own : Role::library_code;
}

// "forward" and " (model.py:31)".
std::vector<std::string> label_of(const FrameName& frame) {
  const std::string name =
      shown(frame.kind == Location::Kind::python ? local_name(frame.function) + compiled_text(frame)
                                                 : short_function(frame.function));
  if (frame.file.empty()) return {name};
  const std::string file = shown(base_name(frame.file));
  return {name, frame.line == 0 ? fmt::format(" ({})", file) : fmt::format(" ({}:{})", file, frame.line)};
}

class FlameGraph {
 public:
  explicit FlameGraph(const TreeSection& section) : section_(section) {}

  [[nodiscard]] Plot draw() {
    const std::string device = to_string(section_.device);
    plot_.description = "Flame graph of " + device;
    std::uint32_t deepest = 0;
    for (const TreeNode& node : section_.nodes) deepest = std::max(deepest, node.depth + 1);
    plot_.frame_height = (deepest + 1) * kFrameRow;
    plot_.height = plot_.frame_height;
    add(Role::root, 0, 0, section_.allocated_bytes, section_.blocks, device + ": all allocated memory", {device});
    std::vector<double> begins;  // left end of the next box at each depth
    for (const TreeNode& node : section_.nodes) {
      begins.resize(node.depth + 2, 0);
      const double begin = begins[node.depth];
      begins[node.depth] += share(node.bytes);
      begins[node.depth + 1] = begin;
      add(role_of(node.frame), begin, node.depth + 1, node.bytes, node.blocks, frame_text(node.frame),
          label_of(node.frame));
    }
    add_without_frames((begins.empty() ? 0 : begins[0]) + share(section_.hidden.bytes));
    add_legend();
    return std::move(plot_);
  }

 private:
  [[nodiscard]] double share(std::uint64_t bytes) const {
    return share_of(bytes, section_.allocated_bytes).value_or(0);
  }

  void add(Role role, double begin, std::uint32_t depth, std::uint64_t bytes, std::uint64_t blocks, std::string title,
           std::vector<std::string> label) {
    const double width = share(bytes);
    std::string size = fmt::format("{}, {}", format_bytes(bytes), share_text(width));
    label.push_back(" \xC2\xB7 " + format_bytes(bytes));
    label.push_back(" \xC2\xB7 " + share_text(width));
    if (blocks != 0) size += fmt::format(", blocks: {}", format_count(blocks));
    PlotBox box{
        role, begin, width, depth * kFrameRow, kFrameRow - 1, {std::move(title), std::move(size)}, std::move(label)};
    box.dashed = role == Role::no_stack;
    plot_.boxes.push_back(std::move(box));
  }

  void add_without_frames(double begin) {
    const auto add_box = [&](Role role, std::uint64_t bytes, std::uint64_t blocks, const char* words) {
      if (bytes == 0) return;
      add(role, begin, 1, bytes, blocks, words, {words});
      begin += share(bytes);
    };
    add_box(Role::no_stack, section_.outside_bytes, section_.outside_blocks, "(no code of the project)");
    add_box(Role::no_stack, section_.no_stack_bytes, section_.no_stack_blocks, "(no stack)");
    add_box(Role::no_stack, section_.unrecorded_bytes, 0, "(not recorded)");
  }

  void add_legend() {
    if (plot_.has_box(Role::own)) plot_.legend.push_back({Role::own, Sample::box, "Python code of the project"});
    if (plot_.has_box(Role::library_code)) {
      plot_.legend.push_back({Role::library_code, Sample::box, "Python code of PyTorch and other libraries"});
    }
    if (plot_.has_box(Role::native)) plot_.legend.push_back({Role::native, Sample::box, "native code"});
    std::uint64_t hidden = section_.hidden.count;
    for (const TreeNode& node : section_.nodes) hidden += node.hidden.count;
    if (hidden != 0) {
      plot_.remark = hidden == 1 ? "Not drawn: 1 call that holds too little memory; 'tidemark tree' lists it."
                                 : fmt::format(
                                       "Not drawn: {} calls that hold too little memory; 'tidemark tree' lists "
                                       "them.",
                                       format_count(hidden));
    }
  }

  const TreeSection& section_;
  Plot plot_;
};

}  // namespace

Plot flame_graph_plot(const TreeSection& section) {
  return FlameGraph(section).draw();
}

}  // namespace tidemark
