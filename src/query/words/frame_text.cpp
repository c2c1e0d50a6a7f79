#include "query/words/frame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyze/common/stack_names.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr std::string_view kFoldersLeftOut = "\xE2\x80\xA6";  // …

std::string file_text(const std::string& file, FileDetail detail) {
  std::string path = short_path(file);
  const std::size_t last = path.rfind('/');
  if (detail == FileDetail::path || last == std::string::npos) return path;
  if (detail == FileDetail::name) return path.substr(last + 1);
  const std::size_t first = path.find('/', 1);
  if (first == last) return path;
  return fmt::format("{}/{}{}", path.substr(0, first), kFoldersLeftOut, path.substr(last));
}

}  // namespace

std::string short_path(const std::string& path) {
  if (const std::string_view installed = installed_path(path); !installed.empty()) return std::string(installed);
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

std::string compiled_text(const FrameName& frame) {
  if (frame.graph == CompiledGraph::none) return {};
  std::string text = " [compiled";
  if (frame.graph != CompiledGraph::unknown) text.append(" ").append(name_in(kCompiledGraphNames, frame.graph));
  if (!frame.source_nodes.empty()) text.append(": ").append(frame.source_nodes);
  return text + "]";
}

std::string function_text(const FrameName& frame) {
  if (frame.kind == Location::Kind::native) return short_function(frame.function);
  return frame.function + compiled_text(frame);
}

std::string frame_text(const FrameName& frame, FileDetail detail, bool line) {
  if (frame.kind == Location::Kind::native) {
    std::string function = shown(short_function(frame.function));
    const std::string_view library = base_name(frame.file);
    if (detail == FileDetail::line_only || library.empty() || frame.function.starts_with(library)) return function;
    return fmt::format("{} ({})", function, shown(library));
  }
  std::string function = shown(local_name(frame.function) + compiled_text(frame));
  const std::string number = line && frame.line != 0 ? fmt::format(":{}", frame.line) : "";
  if (frame.file.empty()) return function;
  if (detail == FileDetail::line_only) return shown(local_name(frame.function)) + number + shown(compiled_text(frame));
  return fmt::format("{} ({}{})", function, shown(file_text(frame.file, detail)), number);
}

std::string place_in_file(const FrameName& frame, FileDetail detail) {
  if (frame.file.empty()) return {};
  return shown(file_text(frame.file, detail)) + (frame.line == 0 ? "" : fmt::format(":{}", frame.line));
}

std::string fit_frame(const FrameName& frame, std::size_t width) {
  for (const FileDetail detail : {FileDetail::path, FileDetail::ends, FileDetail::name}) {
    std::string text = frame_text(frame, detail);
    if (width == 0 || display_width(text) <= width) return text;
  }
  return fit(frame_text(frame, FileDetail::line_only), width);
}

}  // namespace tidemark
