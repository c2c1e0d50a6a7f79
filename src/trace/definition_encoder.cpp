#include "trace/definition_encoder.h"

#include "trace/record_fields.h"

namespace tidemark {
namespace {

using format::RecordKind;

constexpr int kUnknown = -1;  // of pids, tids and ranks

}  // namespace

std::size_t DefinitionEncoder::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = key.first;
  for (const std::uint64_t part : {key.second, key.third}) hash = (hash ^ (hash >> 29)) * 0xBF58'476D'1CE4'E5B9U + part;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

void DefinitionEncoder::add_record(RecordKind kind, const Body& body) {
  append_record(static_cast<std::uint8_t>(kind), body, pending_);
}

StringId DefinitionEncoder::string(std::string_view text) {
  text = text.substr(0, format::kMaxStringBytes);
  if (const auto found = strings_.find(text); found != strings_.end()) return {found->second};
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.emplace(text, id);
  FieldWriter(scratch_).text(text);
  add_record(RecordKind::string, scratch_);
  return {id};
}

LocationId DefinitionEncoder::location(const Location& location) {
  const bool python = location.kind == Location::Kind::python;
  const std::uint64_t first = python ? id_code(location.file.value, strings_.size()) : location.offset;
  const std::uint64_t second =
      python ? id_code(location.function.value, strings_.size()) : id_code(location.module.value, modules_.size());
  // Python's line and native's lack of one keep the two kinds apart.
  const std::uint32_t nn_module = id_code(location.nn_module.value, nn_module_count_);
  const std::uint64_t third = python ? (std::uint64_t{nn_module} << 33) + location.line + 1 : 0;
  const auto [entry, is_new] = locations_.try_emplace({first, second, third}, location_count_);
  if (is_new) {
    ++location_count_;
    FieldWriter fields(scratch_);
    fields.number(static_cast<std::uint8_t>(location.kind));
    if (python) {
      fields.number(first).number(second).number(location.line);
      if (nn_module != 0) fields.number(nn_module);
    } else {
      fields.number(second).number(first);
    }
    add_record(RecordKind::location, scratch_);
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
    add_record(RecordKind::stack, scratch_);
    ++stack_count_;
  }
  return {entry->second};
}

ModuleId DefinitionEncoder::module(const ModuleInfo& module) {
  const std::uint32_t path = id_code(module.path.value, strings_.size());
  FieldWriter(scratch_).number(path).number(module.load_address).text(module.build_id);
  const auto id = static_cast<std::uint32_t>(modules_.size());
  const auto [entry, is_new] = modules_.try_emplace(std::string(scratch_.begin(), scratch_.end()), id);
  if (is_new) add_record(RecordKind::module, scratch_);
  return {entry->second};
}

AutogradNodeId DefinitionEncoder::autograd_node(const AutogradNode& node) {
  const std::uint32_t type = id_code(node.type.value, strings_.size());
  const std::uint32_t thread = id_code(node.forward_thread.value, thread_count_);
  const auto id = static_cast<std::uint32_t>(autograd_nodes_.size());
  const auto [entry, is_new] = autograd_nodes_.try_emplace((std::uint64_t{type} << 32) | thread, id);
  if (is_new) {
    FieldWriter(scratch_).number(type).number(thread);
    add_record(RecordKind::autograd_node, scratch_);
  }
  return {entry->second};
}

NnModuleId DefinitionEncoder::nn_module(const NnModule& module) {
  FieldWriter(scratch_).number(module.address);
  add_record(RecordKind::nn_module, scratch_);
  return {nn_module_count_++};
}

void DefinitionEncoder::nn_module_name(const NnModuleName& name) {
  FieldWriter(scratch_)
      .number(id_code(name.module.value, nn_module_count_))
      .number(id_code(name.root.value, nn_module_count_))
      .number(id_code(name.path.value, strings_.size()))
      .number(id_code(name.type.value, strings_.size()));
  add_record(RecordKind::nn_module_name, scratch_);
}

void DefinitionEncoder::tensor(const ModelTensor& tensor) {
  FieldWriter fields(scratch_);
  fields.number(static_cast<std::uint8_t>(tensor.role))
      .integer(static_cast<std::int8_t>(tensor.device.type))
      .integer(tensor.device.index)
      .number(tensor.requires_grad ? 1 : 0)
      .number(tensor.time_ns)
      .number(tensor.address)
      .number(tensor.storage_bytes)
      .number(tensor.bytes)
      .number(id_code(tensor.module.value, nn_module_count_))
      .number(id_code(tensor.name.value, strings_.size()))
      .number(id_code(tensor.state.value, strings_.size()))
      .number(id_code(tensor.dtype.value, strings_.size()))
      .number(tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) fields.number(dimension);
  add_record(RecordKind::tensor, scratch_);
}

ThreadId DefinitionEncoder::thread(const ThreadInfo& thread) {
  FieldWriter(scratch_).integer(thread.tid.value_or(kUnknown)).text(thread.name);
  add_record(RecordKind::thread, scratch_);
  return {thread_count_++};
}

void DefinitionEncoder::process(const ProcessInfo& process) {
  FieldWriter(scratch_)
      .integer(process.pid.value_or(kUnknown))
      .integer(process.parent_pid.value_or(kUnknown))
      .integer(process.rank.value_or(kUnknown))
      .integer(process.local_rank.value_or(kUnknown))
      .integer(process.world_size.value_or(kUnknown))
      .number(process.start_wall_ns.value_or(0))
      .text(process.hostname)
      .text(process.command_line)
      .text(process.python_version)
      .text(process.torch_version)
      .text(process.stack_mode)
      .text(process.recorder_version);
  add_record(RecordKind::process, scratch_);
}

void DefinitionEncoder::loss(const Loss& loss) {
  FieldWriter fields(scratch_);
  fields.number(static_cast<std::uint8_t>(loss.kind)).number(loss.count).text(loss.text);
  if (loss.limit) fields.number(*loss.limit);
  add_record(RecordKind::loss, scratch_);
}

void DefinitionEncoder::mark(const Mark& mark) {
  FieldWriter(scratch_)
      .number(static_cast<std::uint8_t>(mark.kind))
      .number(mark.time_ns)
      .number(id_code(mark.name.value, strings_.size()))
      .number(id_code(mark.thread.value, thread_count_));
  add_record(RecordKind::mark, scratch_);
}

void DefinitionEncoder::end(const EndInfo& end) {
  FieldWriter(scratch_).number(end.time_ns).number(end.process_exited ? 1 : 0);
  add_record(RecordKind::end, scratch_);
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

}  // namespace tidemark
