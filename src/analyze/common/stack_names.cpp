#include "analyze/common/stack_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/attribution/allocation_origin.h"
#include "analyze/attribution/attributed_store.h"
#include "base/inductor_file.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

// The path after the innermost folder of this name, given with its last slash; empty: there is none.
std::string_view below(std::string_view file, std::string_view folder) {
  for (std::size_t at = file.rfind(folder); at != std::string_view::npos; at = file.rfind(folder, at - 1)) {
    if (at == 0 || file[at - 1] == '/') return file.substr(at + folder.size());
  }
  return {};
}

// The shorter one is in the folder farther inside.
std::string_view in_packages(std::string_view file) {
  const std::string_view site = below(file, "site-packages/");
  const std::string_view dist = below(file, "dist-packages/");
  return site.empty() || (!dist.empty() && dist.size() < site.size()) ? dist : site;
}

// The path below lib/python3.11, lib64/python3.11 or lib/python311.zip; empty: it is in none of them.
std::string_view in_standard_library(std::string_view file) {
  for (const std::string_view parent : {"lib/", "lib64/"}) {
    std::string_view version = below(file, parent);
    for (const std::string_view interpreter : {"python", "pypy"}) {
      if (!version.starts_with(interpreter)) continue;
      version.remove_prefix(interpreter.size());
      const std::size_t slash = version.find('/');
      if (slash != std::string_view::npos && version[0] >= '0' && version[0] <= '9') return version.substr(slash + 1);
    }
  }
  return {};
}

// "/venv/bin/torchrun": pip writes these. A project's own programs have a file name that ends in ".py".
bool is_start_script(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos || file.find('.', slash) != std::string_view::npos) return false;
  return file.substr(0, slash).ends_with("/bin");
}

bool is_generated_by_pytorch(std::string_view file) {
  return file.starts_with("<eval_with_key>") || base_name(file).starts_with("fx_generated_") ||
         file.find("/torchinductor_") != std::string_view::npos || is_inductor_file(file.data(), file.size());
}

// Frames that do not identify the caller: the allocator itself, functions that only pass a request on to it, and
// PyTorch's own capture of stacks.
bool is_allocator_frame(const FrameName& frame) {
  const std::string& name = frame.function;
  return base_name(frame.file).starts_with("libc10") || name.starts_with("c10::") ||
         name.starts_with("at::detail::empty") || name.starts_with("torch::unwind::") ||
         name.starts_with("torch::CapturedTraceback::") ||
         name.starts_with("torch::cuda::(anonymous namespace)::gather");
}

// Frames of PyTorch's libraries without a name, "libtorch_cuda.so+0x41cb0ce".
bool is_unnamed_pytorch(const FrameName& frame) {
  const std::string_view library = base_name(frame.file);
  return library.starts_with("libtorch") && frame.function.starts_with(library);
}

bool is_backward(const FrameName& frame) {
  return frame.kind == Location::Kind::python && frame.file.empty() && frame.function == kBackwardFrame;
}

// The innermost frame outside the allocator, and rather one with a name.
void choose_native(NamedStack& stack) {
  stack.call_site = stack.frames.size() - 1;
  std::optional<std::size_t> unnamed;
  for (std::size_t index = stack.frames.size(); index-- > 0;) {
    const FrameName& frame = stack.frames[index];
    if (is_allocator_frame(frame)) continue;
    if (!is_unnamed_pytorch(frame)) {
      stack.call_site = index;
      return;
    }
    if (!unnamed) unnamed = index;
  }
  if (unnamed) stack.call_site = *unnamed;
}

// Innermost Python frames of one stack by FrameOrigin, up to the project's innermost one.
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

// In the forward pass. In the backward pass FSDP prefetches: the frames do not identify the module.
bool gathers_parameters(const NamedStack& stack) {
  if (!stack.module || stack.backward) return false;
  const auto called = stack.frames.begin() + static_cast<std::ptrdiff_t>(*stack.module) + 1;
  return std::any_of(called, stack.frames.end(), [](const FrameName& frame) {
    return origin_of_frame(frame.file, frame.function) == AllocationOrigin::gathered_parameter;
  });
}

using Stacks = std::vector<NamedStack*>;
using FrameKey = std::tuple<std::string, std::string, std::uint32_t>;  // empty without a frame

enum class Direction : unsigned char { to_callers, to_callees };

// Callers of Python code are Python code: the interpreter's native frames between them are skipped.
std::optional<std::size_t> frame_at(const NamedStack& stack, Direction direction, std::size_t distance) {
  if (direction == Direction::to_callees) {
    const std::size_t index = stack.call_site + distance;
    return index < stack.frames.size() ? std::optional(index) : std::nullopt;
  }
  const bool python = stack.frames[stack.call_site].kind == Location::Kind::python;
  for (std::size_t index = stack.call_site; index-- > 0;) {
    if (python && stack.frames[index].kind != Location::Kind::python) continue;
    if (--distance == 0) return index;
  }
  return std::nullopt;
}

std::map<FrameKey, Stacks> group_by_frame(const Stacks& stacks, Direction direction, std::size_t distance) {
  std::map<FrameKey, Stacks> groups;
  for (NamedStack* stack : stacks) {
    FrameKey key;
    if (const auto index = frame_at(*stack, direction, distance)) {
      const FrameName& frame = stack->frames[*index];
      key = {frame.function, frame.file, frame.line};
    }
    groups[key].push_back(stack);
  }
  return groups;
}

// Separates stacks that look alike. Stacks that still look alike after one frame get a frame farther away.
void separate(const Stacks& stacks) {
  if (stacks.size() < 2) return;
  for (const Direction direction : {Direction::to_callers, Direction::to_callees}) {
    for (std::size_t distance = 1;; ++distance) {
      const auto groups = group_by_frame(stacks, direction, distance);
      if (groups.size() == 1 && groups.begin()->first == FrameKey()) break;  // all have ended
      if (groups.size() == 1) continue;
      for (const auto& [key, group] : groups) {
        for (NamedStack* stack : group) stack->apart = frame_at(*stack, direction, distance);
        separate(group);
      }
      return;
    }
  }
}

}  // namespace

std::string_view installed_path(std::string_view file) {
  const std::string_view package = in_packages(file);
  return package.empty() ? in_standard_library(file) : package;
}

FrameOrigin origin_of(std::string_view file) {
  if (const std::string_view package = in_packages(file); !package.empty()) {
    return package.starts_with("torch/") ? FrameOrigin::pytorch : FrameOrigin::package;
  }
  if (is_generated_by_pytorch(file)) return FrameOrigin::pytorch;
  if (file.starts_with("<frozen ") || !in_standard_library(file).empty()) return FrameOrigin::standard_library;
  // "<__array_function__ internals>", "<decorator-gen-12>", "<attrs generated init model.Config>"
  constexpr std::array<std::string_view, 3> kGenerated = {"<__array_function__", "<decorator-gen-",
                                                          "<attrs generated "};
  const bool generated = std::any_of(kGenerated.begin(), kGenerated.end(),
                                     [&](std::string_view start) { return file.starts_with(start); });
  return generated || is_start_script(file) ? FrameOrigin::package : FrameOrigin::project;
}

FrameOrigin origin_of(const FrameName& frame) {
  return frame.file.empty() ? FrameOrigin::pytorch : origin_of(frame.file);
}

bool is_project_code(const FrameName& frame) {
  return frame.kind == Location::Kind::python && origin_of(frame) == FrameOrigin::project;
}

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
  stack.modules = common_module_path(paths).value_or(paths.front() + others);
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

const FrameName& NamedStack::backward_node() const {
  const auto last = std::find_if(frames.rbegin(), frames.rend(),
                                 [](const FrameName& frame) { return frame.kind == Location::Kind::python; });
  return last != frames.rend() ? *last : frames.back();
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
  return stack.forward_place() != nullptr ? shown : shown + text(stack.backward_node());
}

void tell_apart(const std::vector<NamedStack*>& stacks) {
  std::map<std::string, Stacks> alike;
  for (NamedStack* stack : stacks) {
    if (!stack->frames.empty()) alike[shown_frames(*stack)].push_back(stack);
  }
  for (const auto& [shown, group] : alike) separate(group);
}

}  // namespace tidemark
