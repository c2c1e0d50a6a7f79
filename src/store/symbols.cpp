#include "store/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tidemark {

Symbols::Symbols(const Definitions& definitions)
    : definitions_(definitions), names_(definitions.locations.size()), modules_(definitions.modules.size()) {}

std::string Symbols::text(StringId id) const {
  return id.value < definitions_.strings.size() ? definitions_.strings[id.value] : std::string();
}

std::vector<LocationId> frames_of(const Definitions& definitions, StackId stack) {
  std::vector<LocationId> frames;
  while (stack.value < definitions.stacks.size()) {
    const StackNode& node = definitions.stacks[stack.value];
    frames.push_back(node.location);
    if (node.parent.valid() && node.parent.value >= stack.value) break;  // would not end
    stack = node.parent;
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

FrameName Symbols::resolve(const Location& location) {
  FrameName name;
  name.kind = location.kind == Location::Kind::python ? Location::Kind::python : Location::Kind::native;
  if (location.kind != Location::Kind::native) {
    name.function = text(location.function);
    name.file = text(location.file);
    name.line = location.line;
    name.graph = location.graph;
    name.source_nodes = text(location.source_nodes);
    name.is_module = location.nn_module.valid() && !location.file.valid();
    if (name.function.empty()) name.function = "(unknown function)";
    return name;
  }
  if (location.module.value >= modules_.size()) {
    name.function = fmt::format("0x{:x}", location.offset);
    return name;
  }
  const ModuleInfo& info = definitions_.modules[location.module.value];
  Module& module = modules_[location.module.value];
  name.file = text(info.path);
  if (!std::exchange(module.tried, true)) {
    auto opened = ElfSymbols::open(name.file, info.build_id);
    if (opened) {
      module.symbols = std::move(*opened);
    } else {
      module.error = opened.error().message;
    }
  }
  if (module.symbols) {
    if (auto function = module.symbols->function_at(location.offset)) {
      name.function = std::move(*function);
      return name;
    }
  }
  ++module.unnamed;
  name.function = fmt::format("{}+0x{:x}", base_name(name.file), location.offset);
  return name;
}

const FrameName& Symbols::name(LocationId location) {
  static const FrameName kUnknown = {.function = "(unknown)", .file = {}};
  if (location.value >= names_.size()) return kUnknown;
  std::unique_ptr<FrameName>& entry = names_[location.value];
  if (!entry) entry = std::make_unique<FrameName>(resolve(definitions_.locations[location.value]));
  return *entry;
}

std::vector<MissingSymbols> Symbols::missing() const {
  std::vector<MissingSymbols> missing;
  for (std::size_t index = 0; index < modules_.size(); ++index) {
    const Module& module = modules_[index];
    if (module.unnamed == 0) continue;
    missing.push_back({text(definitions_.modules[index].path), module.error, module.unnamed});
  }
  std::sort(missing.begin(), missing.end(),
            [](const MissingSymbols& left, const MissingSymbols& right) { return left.path < right.path; });
  return missing;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace tidemark
