#include "analyze/common/stack_names.h"

#include <algorithm>
#include <array>
#include <string>

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

}  // namespace

NamedStack name_stack(Symbols& symbols, StackId stack) {
  NamedStack named;
  for (const LocationId location : symbols.frames(stack)) {
    const FrameName& frame = named.frames.emplace_back(symbols.name(location));
    if (frame.is_module) named.module = named.frames.size() - 1;
    if (is_backward(frame)) named.backward = named.frames.size() - 1;
  }
  if (named.module < named.backward) named.module.reset();
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
  const auto text = [](const FrameName& frame) { return frame.function + '\0' + frame.file + '\0'; };
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
