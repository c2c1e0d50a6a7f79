// A stack with names, whose code its frames are, and which of them tell a person most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/groups.h"
#include "store/symbols.h"

namespace tidemark {

enum class FrameOrigin : std::uint8_t {
  project,  ///< the user's own
  package,  ///< installed: below site-packages or dist-packages, or the start script of one (".../bin/torchrun")
  standard_library,  ///< below lib/pythonX.Y, or frozen into the interpreter
  pytorch,           ///< the package torch, and what its compilers generate
};

[[nodiscard]] FrameOrigin origin_of(std::string_view file);
/// Of a Python frame. Those without a file (calls of modules, autograd nodes) are PyTorch's.
[[nodiscard]] FrameOrigin origin_of(const FrameName& frame);

/// Whether it is Python code of FrameOrigin::project.
[[nodiscard]] bool is_project_code(const FrameName& frame);

/// A file's path below site-packages, dist-packages or lib/pythonX.Y: "torch/nn/functional.py", "copy.py". Empty where
/// it is in none of them.
[[nodiscard]] std::string_view installed_path(std::string_view file);

/// Frames from the outermost to the innermost; no frames = the stack is not known.
///
/// A stack is shown as a place in the user's project, and behind it what that called: the innermost Python frame of the
/// project, of other packages, and of all. Without a frame of the project: of what is neither PyTorch's nor frozen into
/// the interpreter; without that the innermost. Without Python: the innermost native one outside the allocator.
struct NamedStack {
  std::vector<FrameName> frames;
  std::size_t call_site = 0;            ///< the place
  std::optional<std::size_t> package;   ///< the innermost frame of an installed package, when the place called it
  std::optional<std::size_t> leaf;      ///< the innermost Python frame, when it is another one than these
  std::optional<std::size_t> apart;     ///< a frame that the stacks shown alike in the same table do not have
  std::optional<std::size_t> module;    ///< the call of a torch.nn.Module, the innermost with a name
  std::optional<std::size_t> backward;  ///< kBackwardFrame: what follows is the forward side

  /// The innermost frame of the place and of the package that it called; none where it is above `backward`.
  [[nodiscard]] const FrameName* forward_place() const;
  /// Of a stack with `backward` that has no forward side: the autograd node.
  [[nodiscard]] const FrameName& backward_node() const;
  bool gathers = false;  ///< FSDP puts together the parameters of `module`
  /// Of several stacks that are shown as this one: what their modules have in common, "layers.*.mlp", or the first and
  /// how many others. Empty: `module` is that of all.
  std::string modules = {};
  /// In lists by owner, what stands in place of a stack; then there are no frames.
  std::optional<BlockOwner> owner = {};
};

[[nodiscard]] NamedStack name_stack(Symbols& symbols, StackId stack);

/// `stack` is the first of these, and shown for all of them: sets NamedStack::modules; no module where one has none.
void share_modules(NamedStack& stack, Symbols& symbols, const std::vector<StackId>& stacks);

/// What is shown of a stack, as text to compare: equal for stacks that look alike.
[[nodiscard]] std::string shown_frames(const NamedStack& stack);
/// The same without the module: equal for those of one call site.
[[nodiscard]] std::string shown_place(const NamedStack& stack);

/// Sets NamedStack::apart of stacks that stand in one table and look alike: the nearest caller in which they differ,
/// else the first frame behind the place.
void tell_apart(const std::vector<NamedStack*>& stacks);

/// The same for the rows of a table; `stack` is a member of a row, or a function that returns it by reference.
template <typename Rows, typename Member>
void tell_rows_apart(Rows& rows, Member stack) {
  std::vector<NamedStack*> stacks;
  stacks.reserve(rows.size());
  for (auto& row : rows) stacks.push_back(&std::invoke(stack, row));
  tell_apart(stacks);
}

}  // namespace tidemark
