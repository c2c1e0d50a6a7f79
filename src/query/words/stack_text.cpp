#include "query/words/stack_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/common/stack_names.h"
#include "query/words/attribution.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr std::string_view kCalls = " \xE2\x86\x92 ";     // →
constexpr std::string_view kCalledBy = " \xE2\x86\x90 ";  // ←
constexpr std::string_view kLeftOut = "\xE2\x80\xA6";     // …

using Frames = std::vector<std::size_t>;

// The frames shown after the place, outermost first.
Frames callees_of(const NamedStack& stack) {
  Frames callees;
  for (const std::optional<std::size_t>& index : {stack.package, stack.leaf, stack.apart}) {
    if (index && *index > stack.call_site) callees.push_back(*index);
  }
  std::sort(callees.begin(), callees.end());
  callees.erase(std::unique(callees.begin(), callees.end()), callees.end());
  return callees;
}

// The nearest first.
Frames callers_of(const NamedStack& stack) {
  Frames callers;
  if (stack.frames.empty()) return callers;
  const FrameName& place = stack.frames[stack.call_site];
  const bool python = place.kind == Location::Kind::python;
  const bool project = is_project_code(place);
  for (std::size_t index = stack.call_site; index-- > 0;) {
    const FrameName& caller = stack.frames[index];
    if (python && caller.kind != Location::Kind::python) continue;  // the interpreter between two functions
    const FrameOrigin origin = origin_of(caller);
    const bool shown = project ? origin == FrameOrigin::project
                               : origin != FrameOrigin::pytorch && !caller.file.starts_with("<frozen ");
    if (shown || index == stack.apart) callers.push_back(index);
  }
  return callers;
}

// PyTorch's lines are omitted, and its files mostly, unless nothing else differs.
std::string callees_text(const NamedStack& stack, FileDetail detail, FileDetail leaf_detail) {
  std::string text;
  for (const std::size_t index : callees_of(stack)) {
    const bool telling = index == stack.package || index == stack.apart;
    text.append(kCalls).append(frame_text(stack.frames[index], telling ? detail : leaf_detail, telling));
  }
  return text;
}

// The first `count` of the callers, and the one that distinguishes the stack; "…" replaces others. With
// FileDetail::name, callers in the place's own file are shown by line only.
std::string callers_text(const NamedStack& stack, const Frames& callers, std::size_t count, FileDetail detail) {
  std::string text;
  bool gap = false;
  for (std::size_t index = 0; index < callers.size(); ++index) {
    if (index >= count && callers[index] != stack.apart) {
      gap = true;
      continue;
    }
    if (std::exchange(gap, false)) text.append(kCalledBy).append(kLeftOut);
    const FrameName& caller = stack.frames[callers[index]];
    const bool same_file = caller.file == stack.frames[stack.call_site].file;
    const FileDetail shown = detail == FileDetail::name && same_file ? FileDetail::line_only : detail;
    text.append(kCalledBy).append(frame_text(caller, shown));
  }
  if (gap && !text.empty()) text.append(kCalledBy).append(kLeftOut);
  return text;
}

// Details of files, the most detailed first.
struct Details {
  FileDetail place;
  FileDetail callees;
  FileDetail leaf;
  FileDetail callers;
};
constexpr std::array<Details, 5> kDetails = {
    {{FileDetail::path, FileDetail::path, FileDetail::path, FileDetail::path},
     {FileDetail::ends, FileDetail::ends, FileDetail::ends, FileDetail::ends},
     {FileDetail::ends, FileDetail::ends, FileDetail::line_only, FileDetail::ends},
     {FileDetail::ends, FileDetail::name, FileDetail::line_only, FileDetail::ends},
     {FileDetail::ends, FileDetail::name, FileDetail::line_only, FileDetail::name}}};
constexpr std::array<Details, 3> kShortest = {
    {{FileDetail::ends, FileDetail::line_only, FileDetail::line_only, FileDetail::line_only},
     {FileDetail::name, FileDetail::line_only, FileDetail::line_only, FileDetail::line_only},
     {FileDetail::line_only, FileDetail::line_only, FileDetail::line_only, FileDetail::line_only}}};

std::string module_text(const NamedStack& stack) {
  return stack.modules.empty() ? frame_text(stack.frames[*stack.module]) : printable(stack.modules);
}

// A module is named by its path, otherwise the place of the forward side, or the node itself.
std::string backward_text(const NamedStack& stack) {
  const FrameName* const place = stack.forward_place();
  std::string text = "backward of ";
  if (!stack.module)
    return text + (place != nullptr ? frame_text(*place, FileDetail::name) : frame_text(stack.backward_node()));
  text += module_text(stack);
  return place == nullptr ? text : text.append(" (").append(place_in_file(*place, FileDetail::name)).append(")");
}

// In at most `width` columns, if the place fits.
std::optional<std::string> fit_place(const NamedStack& stack, const Frames& callers, std::size_t width,
                                     const std::string& module) {
  const FrameName& place = stack.frames[stack.call_site];
  const auto text = [&](const Details& details, std::size_t count) {
    return frame_text(place, details.place) + callees_text(stack, details.callees, details.leaf) + module +
           callers_text(stack, callers, count, details.callers);
  };
  if (width == 0) return text(kDetails.front(), callers.size());
  // The first that fits. A caller is more informative than folders and the files of libraries.
  const auto fitting = [&](const auto& all_details, std::size_t count) -> std::optional<std::string> {
    for (const Details& details : all_details) {
      std::string line = text(details, count);
      if (display_width(line) <= width) return line;
    }
    return std::nullopt;
  };
  std::optional<std::string> best = fitting(kDetails, 0);
  if (!best) best = fitting(kShortest, 0);
  for (std::size_t count = 1; best && count <= callers.size(); ++count) {
    std::optional<std::string> line = fitting(kDetails, count);
    if (!line) break;
    best = std::move(line);
  }
  return best;
}

std::string fit_stack(const NamedStack& stack, const Frames& callers, std::size_t width) {
  if (stack.owner) return fit(owner_text(*stack.owner), width);
  if (stack.frames.empty()) return "(no stack)";
  if (stack.backward) return fit(backward_text(stack), width);
  if (stack.gathers && stack.module) return fit("all-gather of " + module_text(stack), width);
  std::optional<std::string> best;
  if (stack.module) best = fit_place(stack, callers, width, " in " + module_text(stack));
  if (!best) best = fit_place(stack, callers, width, "");
  return best ? *std::move(best) : fit_frame(stack.frames[stack.call_site], width);
}

// A caller that distinguishes the stack belongs to the place.
Frames caller_apart(const NamedStack& stack) {
  return stack.apart && *stack.apart < stack.call_site ? Frames{*stack.apart} : Frames();
}

}  // namespace

std::string stack_text(const NamedStack& stack, std::size_t width) {
  return fit_stack(stack, caller_apart(stack), width);
}

std::string place_text(const NamedStack& stack) {
  return fit_stack(stack, {}, 0);
}

std::string callers_text(const NamedStack& stack) {
  const Frames callers = callers_of(stack);
  return callers_text(stack, callers, callers.size(), FileDetail::path);
}

std::string stack_text_with_callers(const NamedStack& stack, std::size_t width) {
  return fit_stack(stack, callers_of(stack), width);
}

}  // namespace tidemark
