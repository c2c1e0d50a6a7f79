#include "report/words/frame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/words/printable.h"

namespace tidemark {
namespace {

constexpr std::string_view kArrow = " \xE2\x86\x90 ";  // ←

}  // namespace

std::string short_path(const std::string& path) {
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(packages);
    if (at != std::string::npos) return path.substr(at + packages.size());
  }
  const std::size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  const std::size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

std::string short_function(const std::string& function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  constexpr std::string_view kOperator = "operator";
  int angles = 0;
  for (std::size_t at = 0; at < function.size(); ++at) {
    const std::string_view rest = std::string_view(function).substr(at);
    if (rest.starts_with(kAnonymous)) {
      at += kAnonymous.size() - 1;
    } else if (rest.starts_with(kOperator)) {
      // The signs of an operator's name are no brackets.
      const std::string_view signs = rest.substr(kOperator.size());
      const std::size_t other = std::min(signs.find_first_not_of("<>=-+*/!&|^~[]%,"), signs.size());
      at += kOperator.size() + (signs.starts_with("()") ? 2 : other) - 1;
    } else if (function[at] == '<') {
      ++angles;
    } else if (function[at] == '>') {
      --angles;
    } else if (function[at] == '(' && angles == 0 && at != 0) {
      return function.substr(0, at);
    }
  }
  return function;
}

std::string local_name(const std::string& function) {
  constexpr std::string_view kLocals = ".<locals>.";
  const std::size_t at = function.rfind(kLocals);
  return at == std::string::npos ? function : function.substr(at + kLocals.size());
}

std::string frame_text(const FrameName& frame) {
  if (frame.kind == Location::Kind::native) {
    std::string function = shown(short_function(frame.function));
    const std::string_view library = base_name(frame.file);
    if (library.empty() || frame.function.starts_with(library)) return function;
    return fmt::format("{} ({})", function, shown(library));
  }
  std::string function = shown(local_name(frame.function));
  if (frame.file.empty()) return function;
  if (frame.line == 0) return fmt::format("{} ({})", function, shown(short_path(frame.file)));
  return fmt::format("{} ({}:{})", function, shown(short_path(frame.file)), frame.line);
}

std::string stack_text(const NamedStack& stack) {
  if (stack.frames.empty()) return "(no stack)";
  std::string text = frame_text(stack.frames[stack.call_site]);
  if (stack.leaf) text += " via " + shown(local_name(stack.frames[*stack.leaf].function));
  return text;
}

std::string callers_text(const NamedStack& stack) {
  std::string text;
  if (stack.frames.empty()) return text;
  const bool python = stack.frames[stack.call_site].kind == Location::Kind::python;
  for (std::size_t index = stack.call_site; index-- > 0;) {
    const FrameName& caller = stack.frames[index];
    if (is_framework_file(caller.file)) continue;
    if (python && caller.kind != Location::Kind::python) continue;  // the interpreter between two functions
    text += kArrow;
    text += frame_text(caller);
  }
  return text;
}

std::string stack_text_with_callers(const NamedStack& stack) {
  return stack_text(stack) + callers_text(stack);
}

}  // namespace tidemark
