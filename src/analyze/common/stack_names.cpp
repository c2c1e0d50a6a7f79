#include "analyze/common/stack_names.h"

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

void choose_native(NamedStack& stack) {
  for (std::size_t index = stack.frames.size(); index-- > 0;) {
    stack.call_site = index;
    if (!is_allocator_frame(stack.frames[index])) return;
  }
  stack.call_site = stack.frames.size() - 1;
}

}  // namespace

bool is_framework_file(const std::string& file) {
  return file.find("site-packages/torch/") != std::string::npos ||
         file.find("dist-packages/torch/") != std::string::npos || file.starts_with("<frozen ");
}

NamedStack name_stack(Symbols& symbols, StackId stack) {
  NamedStack named;
  for (const LocationId location : symbols.frames(stack)) named.frames.push_back(symbols.name(location));
  std::optional<std::size_t> innermost;
  std::optional<std::size_t> user;
  for (std::size_t index = named.frames.size(); index-- > 0 && !user;) {
    const FrameName& frame = named.frames[index];
    if (frame.kind != Location::Kind::python) continue;
    if (!innermost) innermost = index;
    if (!is_framework_file(frame.file)) user = index;
  }
  if (!innermost) {
    if (!named.frames.empty()) choose_native(named);
    return named;
  }
  named.call_site = user.value_or(*innermost);
  if (named.call_site != *innermost) named.leaf = innermost;
  return named;
}

}  // namespace tidemark
