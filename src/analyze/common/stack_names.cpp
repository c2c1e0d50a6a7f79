#include "analyze/common/stack_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/attributed_store.h"

namespace tidemark {
namespace {

// The allocator itself, the functions that only pass a request on to it, and PyTorch's own capture of stacks say
// nothing about who wanted the memory.
bool is_allocator_frame(const FrameName& frame) {
  const std::string& name = frame.function;
  return base_name(frame.file).starts_with("libc10") || name.starts_with("c10::") ||
         name.starts_with("at::detail::empty") || name.starts_with("torch::unwind::") ||
         name.starts_with("torch::CapturedTraceback::") ||
         name.starts_with("torch::cuda::(anonymous namespace)::gather");
}

bool is_backward(const FrameName& frame) {
  return frame.kind == Location::Kind::python && frame.file.empty() && frame.function == kBackwardFrame;
}

void choose_native(NamedStack& stack) {
  for (std::size_t index = stack.frames.size(); index-- > 0;) {
    stack.call_site = index;
    if (!is_allocator_frame(stack.frames[index])) return;
  }
  stack.call_site = stack.frames.size() - 1;
}

// Of one stack by FrameOrigin: the innermost Python frame, as far in as the project's.
struct Innermost {
  std::optional<std::size_t> of(FrameOrigin origin) const { return frames[static_cast<std::size_t>(origin)]; }

  std::array<std::optional<std::size_t>, 4> frames;
  std::optional<std::size_t> any;
};

Innermost find_innermost(const std::vector<FrameName>& frames) {
  Innermost innermost;
  for (std::size_t index = frames.size(); index-- > 0 && !innermost.of(FrameOrigin::project);) {
    if (frames[index].kind != Location::Kind::python) continue;
    if (!innermost.any) innermost.any = index;
    std::optional<std::size_t>& found = innermost.frames[static_cast<std::size_t>(origin_of(frames[index]))];
    if (!found && !frames[index].file.starts_with("<frozen ")) found = index;
  }
  return innermost;
}

// In the forward pass. In the backward pass FSDP gathers ahead: for which module, the frames do not tell.
bool gathers_parameters(const NamedStack& stack) {
  if (!stack.module || stack.backward) return false;
  const auto called = stack.frames.begin() + static_cast<std::ptrdiff_t>(*stack.module) + 1;
  return std::any_of(called, stack.frames.end(), [](const FrameName& frame) {
    return origin_of_frame(frame.file, frame.function) == AllocationOrigin::gathered_parameter;
  });
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char letter : path) {
    if (letter == '.')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

bool is_layer_number(const std::string& part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
}

// Of paths that differ in numbers only, with "*" for these; none of others.
std::optional<std::string> common_pattern(const std::vector<std::string>& paths) {
  std::vector<std::string> common = parts_of(paths.front());
  for (const std::string& path : paths) {
    const std::vector<std::string> parts = parts_of(path);
    if (parts.size() != common.size()) return std::nullopt;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (parts[part] == common[part]) continue;
      const bool numbers = is_layer_number(parts[part]) && (common[part] == "*" || is_layer_number(common[part]));
      if (!numbers) return std::nullopt;
      common[part] = "*";
    }
  }
  std::string pattern;
  for (const std::string& part : common) pattern.append(pattern.empty() ? "" : ".").append(part);
  return pattern;
}

}  // namespace

void share_modules(NamedStack& stack, Symbols& symbols, const std::vector<StackId>& stacks) {
  std::vector<std::string> paths;
  for (const StackId id : stacks) {
    const NamedStack named = name_stack(symbols, id);
    if (!named.module) return stack.module.reset();
    const std::string& path = named.frames[*named.module].function;
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  if (paths.size() < 2) return;
  const std::string others =
      paths.size() == 2 ? " and another module" : fmt::format(" and {} other modules", paths.size() - 1);
  stack.modules = common_pattern(paths).value_or(paths.front() + others);
}

NamedStack name_stack(Symbols& symbols, StackId stack) {
  NamedStack named;
  for (const LocationId location : symbols.frames(stack)) {
    const FrameName& frame = named.frames.emplace_back(symbols.name(location));
    if (frame.is_module) named.module = named.frames.size() - 1;
    if (is_backward(frame)) named.backward = named.frames.size() - 1;
  }
  if (named.module < named.backward) named.module.reset();
  named.gathers = gathers_parameters(named);
  const Innermost innermost = find_innermost(named.frames);
  if (!innermost.any) {
    if (!named.frames.empty()) choose_native(named);
    return named;
  }
  const auto package = innermost.of(FrameOrigin::package);
  if (const auto project = innermost.of(FrameOrigin::project)) {
    named.call_site = *project;
    named.package = package;
  } else {
    named.call_site = std::max(package, innermost.of(FrameOrigin::standard_library)).value_or(*innermost.any);
  }
  if (innermost.any != named.call_site && innermost.any != named.package) named.leaf = innermost.any;
  return named;
}

const FrameName* NamedStack::forward_place() const {
  const std::size_t index = package.value_or(call_site);
  return backward && index > *backward ? &frames[index] : nullptr;
}

std::string shown_frames(const NamedStack& stack) {
  std::string shown = shown_place(stack);
  if (stack.module) shown += '\0' + stack.frames[*stack.module].function;
  return shown;
}

std::string shown_place(const NamedStack& stack) {
  if (stack.frames.empty()) return {};
  const auto text = [](const FrameName& frame) {
    return frame.function + '\0' + frame.file + '\0' + static_cast<char>('0' + static_cast<int>(frame.graph));
  };
  const FrameName& place = stack.frames[stack.call_site];
  std::string shown = text(place) + std::to_string(place.line);
  if (stack.package)
    shown += '\0' + text(stack.frames[*stack.package]) + std::to_string(stack.frames[*stack.package].line);
  if (stack.leaf) shown += '\0' + text(stack.frames[*stack.leaf]);
  if (!stack.backward) return shown;
  shown += kBackwardFrame;
  return stack.forward_place() != nullptr ? shown : shown + text(stack.frames.back());
}

}  // namespace tidemark
