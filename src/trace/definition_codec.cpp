#include "trace/definition_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "trace/record_fields.h"

namespace tidemark {

namespace {

using format::RecordKind;

/// Calls `use` with the table for records of this kind. False for a kind without a table.
template <typename Use>
bool with_table(std::uint64_t kind, Definitions& all, const Use& use) {
  const auto given = [&use](auto& table) {
    use(table);
    return true;
  };
  switch (static_cast<RecordKind>(std::min<std::uint64_t>(kind, 255))) {
    case RecordKind::string:
      return given(all.strings);
    case RecordKind::location:
      return given(all.locations);
    case RecordKind::stack:
      return given(all.stacks);
    case RecordKind::thread:
      return given(all.threads);
    case RecordKind::module:
      return given(all.modules);
    case RecordKind::loss:
      return given(all.losses);
    case RecordKind::mark:
      return given(all.marks);
    case RecordKind::nn_module:
      return given(all.nn_modules);
    case RecordKind::tensor:
      return given(all.tensors);
    case RecordKind::autograd_node:
      return given(all.autograd_nodes);
    case RecordKind::nn_module_name:
      return given(all.nn_module_names);
    case RecordKind::process:
    case RecordKind::end:
      break;
  }
  return false;
}

template <typename Entry>
void read_entry(FieldReader& fields, const DefinedIds& /*defined*/, Entry& entry) {
  fields.field(entry);
}
void read_entry(FieldReader& fields, const DefinedIds& defined, StackNode& node) {
  const std::uint64_t distance = fields.number();  // back to the parent
  fields.require(distance <= defined.stacks);
  if (distance != 0 && fields.ok()) node.parent.value = defined.stacks - static_cast<std::uint32_t>(distance);
  fields.field(node.location);
}
void read_entry(FieldReader& fields, const DefinedIds& /*defined*/, Location& location) {
  const std::uint64_t kind = fields.number();
  if (kind == static_cast<std::uint64_t>(Location::Kind::python)) {
    fields.field(location.file);
    fields.field(location.function);
    fields.field(location.line);
    if (!fields.at_end()) fields.field(location.nn_module);
    if (!fields.at_end()) {
      fields.field(location.graph);
      fields.field(location.source_nodes);
    }
  } else if (kind == static_cast<std::uint64_t>(Location::Kind::native)) {
    location.kind = Location::Kind::native;
    fields.field(location.module);
    fields.field(location.offset);
  }  // a kind of later versions: the entry stays, nameless, so that the ids after it are right
}

}  // namespace

std::size_t DefinitionEncoder::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = key.first;
  for (const std::uint64_t part : {key.second, key.third}) hash = (hash ^ (hash >> 29)) * 0xBF58'476D'1CE4'E5B9U + part;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

DefinedIds DefinitionEncoder::defined() const {
  const auto count = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
  return {count(strings_), location_count_,  stack_count_,         thread_count_,
          count(modules_), nn_module_count_, autograd_node_count()};
}

void DefinitionEncoder::add_body(RecordKind kind) {
  append_record(static_cast<std::uint8_t>(kind), scratch_, pending_);
}

template <typename Record>
void DefinitionEncoder::add(RecordKind kind, const Record& record) {
  FieldWriter(scratch_, defined()).field(record);
  add_body(kind);
}

StringId DefinitionEncoder::string(std::string_view text) {
  text = text.substr(0, format::kMaxStringBytes);
  if (const auto found = strings_.find(text); found != strings_.end()) return {found->second};
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.emplace(text, id);
  add(RecordKind::string, text);
  return {id};
}

LocationId DefinitionEncoder::location(const Location& location) {
  const bool python = location.kind == Location::Kind::python;
  const std::uint64_t first = python ? id_code(location.file.value, strings_.size()) : location.offset;
  const std::uint64_t second =
      python ? id_code(location.function.value, strings_.size()) : id_code(location.module.value, modules_.size());
  const std::uint32_t nn_module = id_code(location.nn_module.value, nn_module_count_);
  const std::uint64_t graph = static_cast<std::uint8_t>(location.graph);
  const std::uint64_t source_nodes = id_code(location.source_nodes.value, strings_.size());
  // Python's line and native's lack of one keep the two kinds apart.
  const Key key = python ? Key{first | source_nodes << 32, second | graph << 32,
                               (std::uint64_t{nn_module} << 33) + location.line + 1}
                         : Key{first, second, 0};
  const auto [entry, is_new] = locations_.try_emplace(key, location_count_);
  if (is_new) {
    ++location_count_;
    FieldWriter fields(scratch_);
    fields.field(location.kind);
    if (python) {
      fields.number(first).number(second).number(location.line);
      const bool compiled = graph != 0 || source_nodes != 0;
      if (nn_module != 0 || compiled) fields.number(nn_module);
      if (compiled) fields.number(graph).number(source_nodes);
    } else {
      fields.number(second).number(first);
    }
    add_body(RecordKind::location);
  }
  return {entry->second};
}

StackId DefinitionEncoder::stack(StackId parent, LocationId location) {
  const std::uint32_t parent_code = id_code(parent.value, stack_count_);
  const std::uint32_t location_code = id_code(location.value, location_count_);
  const std::uint64_t key = (std::uint64_t{parent_code} << 32) | location_code;
  const auto [entry, is_new] = stacks_.try_emplace(key, stack_count_);
  if (is_new) {
    // The distance back to the parent: mostly 1, since a stack is defined from its root outwards.
    const std::uint32_t distance = parent_code == 0 ? 0 : stack_count_ - parent.value;
    FieldWriter(scratch_).number(distance).number(location_code);
    add_body(RecordKind::stack);
    ++stack_count_;
  }
  return {entry->second};
}

ModuleId DefinitionEncoder::module(const ModuleInfo& module) {
  FieldWriter(scratch_, defined()).field(module);
  const auto id = static_cast<std::uint32_t>(modules_.size());
  const auto [entry, is_new] = modules_.try_emplace(std::string(scratch_.begin(), scratch_.end()), id);
  if (is_new) add_body(RecordKind::module);
  return {entry->second};
}

AutogradNodeId DefinitionEncoder::autograd_node(const AutogradNode& node) {
  const std::uint32_t type = id_code(node.type.value, strings_.size());
  const std::uint32_t thread = id_code(node.forward_thread.value, thread_count_);
  const auto id = static_cast<std::uint32_t>(autograd_nodes_.size());
  const auto [entry, is_new] = autograd_nodes_.try_emplace((std::uint64_t{type} << 32) | thread, id);
  if (is_new) add(RecordKind::autograd_node, node);
  return {entry->second};
}

NnModuleId DefinitionEncoder::nn_module(const NnModule& module) {
  add(RecordKind::nn_module, module);
  return {nn_module_count_++};
}

ThreadId DefinitionEncoder::thread(const ThreadInfo& thread) {
  add(RecordKind::thread, thread);
  return {thread_count_++};
}

void DefinitionEncoder::nn_module_name(const NnModuleName& name) {
  add(RecordKind::nn_module_name, name);
}

void DefinitionEncoder::tensor(const ModelTensor& tensor) {
  add(RecordKind::tensor, tensor);
}

void DefinitionEncoder::process(const ProcessInfo& process) {
  add(RecordKind::process, process);
}

void DefinitionEncoder::loss(const Loss& loss) {
  add(RecordKind::loss, loss);
}

void DefinitionEncoder::mark(const Mark& mark) {
  add(RecordKind::mark, mark);
}

void DefinitionEncoder::end(const EndInfo& end) {
  add(RecordKind::end, end);
}

std::size_t DefinitionEncoder::pending_bytes() const {
  std::size_t bytes = 0;
  for (const Body& payload : pending_) bytes += format::kFrameHeaderBytes + payload.size();
  return bytes;
}

void DefinitionEncoder::append_frames(FrameEncoder& frames, std::vector<std::byte>& out) {
  for (const Body& payload : pending_) {
    const ByteSpan part = payload;
    frames.append(format::FrameType::definitions, {&part, 1}, out);
  }
  pending_.clear();
}

Result<void> DefinitionDecoder::decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes,
                                       Definitions& definitions, const RecordObserver& observe) {
  memory_allowed_ += kMemoryPerStoredByte * stored_bytes;
  FieldReader records(payload);
  while (!records.at_end()) {
    const std::uint64_t kind = records.number();
    const auto body = records.bytes();
    if (!records.ok()) return Error{"a definition is longer than its frame"};
    const DefinedIds defined = DefinedIds::of(definitions);
    FieldReader fields(body, defined);
    memory_used_ += body.size();
    const bool is_entry = with_table(kind, definitions, [&](auto& table) {
      memory_used_ += sizeof(table[0]);
      if (memory_used_ <= memory_allowed_) read_entry(fields, defined, table.emplace_back());
    });
    if (memory_used_ > memory_allowed_) {
      return Error{fmt::format("its definitions take more than {} times their bytes in the file, as no recording's do",
                               kMemoryPerStoredByte)};
    }
    if (kind == static_cast<std::uint64_t>(RecordKind::process)) {
      fields.field(definitions.process);
    } else if (kind == static_cast<std::uint64_t>(RecordKind::end)) {
      fields.field(definitions.end.emplace());
    } else if (!is_entry) {
      ++unknown_records_;
    }
    // Bytes left over are fields that later versions added.
    if (!fields.ok()) return Error{"a definition is cut short, or refers to what was never defined"};
    const bool fits =
        kind <= std::numeric_limits<std::underlying_type_t<RecordKind>>::max();  // else it looks like another
    if (observe && fits) observe(static_cast<RecordKind>(kind));
  }
  return {};
}

}  // namespace tidemark
