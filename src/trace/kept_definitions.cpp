#include "trace/kept_definitions.h"

#include <functional>
#include <utility>

namespace tidemark {
namespace {

std::size_t mixed(std::uint64_t hash, std::uint64_t part) {
  return static_cast<std::size_t>(((hash ^ (hash >> 29)) * 0xBF58'476D'1CE4'E5B9U) + part);
}

}  // namespace

std::size_t KeptDefinitions::StringRules::hash(const std::string& text) {
  return std::hash<std::string>{}(text);
}

std::size_t KeptDefinitions::LocationRules::hash(const Location& location) {
  std::size_t hash = mixed(location.file.value, location.function.value);
  hash = mixed(hash, location.line);
  hash = mixed(hash, location.offset);
  hash = mixed(hash, location.module.value);
  hash = mixed(hash, location.nn_module.value);
  return mixed(hash, location.source_nodes.value);
}

bool KeptDefinitions::LocationRules::equal(const Location& left, const Location& right) {
  return left.kind == right.kind && left.file == right.file && left.function == right.function &&
         left.line == right.line && left.module == right.module && left.offset == right.offset &&
         left.nn_module == right.nn_module && left.graph == right.graph && left.source_nodes == right.source_nodes;
}

std::size_t KeptDefinitions::StackRules::hash(const StackNode& node) {
  return mixed(mixed(1, node.parent.value), node.location.value);
}

std::size_t KeptDefinitions::ModuleRules::hash(const ModuleInfo& module) {
  return mixed(mixed(1, module.path.value), module.load_address);
}

std::size_t KeptDefinitions::NodeRules::hash(const AutogradNode& node) {
  return mixed(mixed(1, node.type.value), node.forward_thread.value);
}

void KeptDefinitions::nn_module_name(const NnModuleName& name) {
  auto* entry = nn_modules_.find(name.module.value);
  if (entry == nullptr) return;
  entry->value.name = name;
  if (writer_ != nullptr && entry->file == file_) writer_->nn_module_name(name_in_file(name));
}

NnModuleName KeptDefinitions::name_in_file(const NnModuleName& name) {
  return {in_file(name.module), in_file(name.root), in_file(name.path), in_file(name.type)};
}

void KeptDefinitions::begin_file(RecordingWriter& writer) {
  writer_ = &writer;
  ++file_;
  threads_in_file_.clear();
  nn_modules_in_file_.clear();
}

StringId KeptDefinitions::in_file(StringId id) {
  auto* entry = strings_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    entry->file_id = writer_->string(entry->value).value;
    entry->file = file_;
  }
  return {entry->file_id};
}

LocationId KeptDefinitions::in_file(LocationId id) {
  auto* entry = locations_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    Location location = entry->value;
    location.file = in_file(location.file);
    location.function = in_file(location.function);
    location.module = in_file(location.module);
    location.nn_module = in_file(location.nn_module);
    location.source_nodes = in_file(location.source_nodes);
    entry->file_id = writer_->location(location).value;
    entry->file = file_;
  }
  return {entry->file_id};
}

StackId KeptDefinitions::in_file(StackId id) {
  const auto* entry = stacks_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file == file_) return {entry->file_id};
  chain_.clear();
  StackId parent;
  for (StackId at = id; (entry = stacks_.find(at.value)) != nullptr; at = entry->value.parent) {
    if (entry->file == file_) {
      parent = {entry->file_id};
      break;
    }
    chain_.push_back(at);
  }
  for (auto at = chain_.rbegin(); at != chain_.rend(); ++at) {
    auto* node = stacks_.find(at->value);
    parent = writer_->stack(parent, in_file(node->value.location));
    node->file_id = parent.value;
    node->file = file_;
  }
  return parent;
}

ModuleId KeptDefinitions::in_file(ModuleId id) {
  auto* entry = modules_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    ModuleInfo module = entry->value;
    module.path = in_file(module.path);
    entry->file_id = writer_->module(module).value;
    entry->file = file_;
  }
  return {entry->file_id};
}

ThreadId KeptDefinitions::in_file(ThreadId id) {
  auto* entry = threads_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    entry->file_id = writer_->thread(entry->value.info).value;
    entry->file = file_;
    threads_in_file_.push_back(entry->value.serial);
  }
  return {entry->file_id};
}

NnModuleId KeptDefinitions::in_file(NnModuleId id) {
  auto* entry = nn_modules_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    const std::uint32_t file_id = writer_->nn_module(entry->value.module).value;
    entry->file_id = file_id;
    entry->file = file_;
    nn_modules_in_file_.push_back(entry->value.serial);
    if (entry->value.name) names_due_.push_back(*entry->value.name);
    // One after the other: each may name a root that the file does not have yet, and so on.
    if (!std::exchange(writing_names_, true)) {
      while (!names_due_.empty()) {
        const NnModuleName name = names_due_.back();
        names_due_.pop_back();
        writer_->nn_module_name(name_in_file(name));
      }
      writing_names_ = false;
    }
    return {file_id};
  }
  return {entry->file_id};
}

AutogradNodeId KeptDefinitions::in_file(AutogradNodeId id) {
  auto* entry = autograd_nodes_.find(id.value);
  if (entry == nullptr) return {};
  if (entry->file != file_) {
    entry->file_id = writer_->autograd_node({in_file(entry->value.type), in_file(entry->value.forward_thread)}).value;
    entry->file = file_;
  }
  return {entry->file_id};
}

template <typename Table>
auto* KeptDefinitions::mark(Table& table, std::uint32_t id) {
  auto* entry = table.find(id);
  return entry == nullptr || std::exchange(entry->marked, true) ? nullptr : entry;
}

void KeptDefinitions::keep(StringId id) {
  mark(strings_, id.value);
}

void KeptDefinitions::keep(LocationId id) {
  const auto* entry = mark(locations_, id.value);
  if (entry == nullptr) return;
  keep(entry->value.file);
  keep(entry->value.function);
  keep(entry->value.module);
  keep(entry->value.nn_module);
  keep(entry->value.source_nodes);
}

void KeptDefinitions::keep(StackId id) {
  while (const auto* entry = mark(stacks_, id.value)) {
    keep(entry->value.location);
    id = entry->value.parent;
  }
}

void KeptDefinitions::keep(ModuleId id) {
  if (const auto* entry = mark(modules_, id.value)) keep(entry->value.path);
}

void KeptDefinitions::keep(ThreadId id) {
  mark(threads_, id.value);
}

void KeptDefinitions::keep(NnModuleId id) {
  while (const auto* entry = mark(nn_modules_, id.value)) {
    if (!entry->value.name) return;
    keep(entry->value.name->path);
    keep(entry->value.name->type);
    id = entry->value.name->root;
  }
}

void KeptDefinitions::keep(AutogradNodeId id) {
  const auto* entry = mark(autograd_nodes_, id.value);
  if (entry == nullptr) return;
  keep(entry->value.type);
  keep(entry->value.forward_thread);
}

void KeptDefinitions::sweep() {
  stacks_.sweep();
  locations_.sweep();
  autograd_nodes_.sweep();
  modules_.sweep();
  strings_.sweep();
  const auto nothing = [](std::uint32_t) {};
  threads_.sweep(nothing);
  nn_modules_.sweep(nothing);
  count_after_sweep_ = count();
}

std::size_t KeptDefinitions::count() const {
  return strings_.count() + locations_.count() + stacks_.count() + modules_.count() + autograd_nodes_.count() +
         threads_.count() + nn_modules_.count();
}

}  // namespace tidemark
