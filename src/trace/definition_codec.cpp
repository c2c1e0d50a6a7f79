#include "trace/definition_codec.h"

#include <fmt/format.h>

#include "trace/record_fields.h"

namespace tidemark {

namespace {

using format::RecordKind;

constexpr int kUnknown = -1;  // of pids, tids and ranks

using format::RecordKind;

constexpr RecordKind kLastKind = RecordKind::autograd_node;

ProcessInfo read_process(FieldReader& fields) {
  ProcessInfo process;
  process.pid = unless_negative(fields.integer());
  process.parent_pid = unless_negative(fields.integer());
  process.rank = unless_negative(fields.integer32());
  process.local_rank = unless_negative(fields.integer32());
  process.world_size = unless_negative(fields.integer32());
  if (const std::uint64_t start = fields.number(); start != 0) process.start_wall_ns = start;
  process.hostname = fields.text();
  process.command_line = fields.text();
  process.python_version = fields.text();
  process.torch_version = fields.text();
  process.stack_mode = fields.text();
  process.recorder_version = fields.text();
  return process;
}

Location read_location(FieldReader& fields, const Definitions& definitions) {
  Location location;
  const std::uint64_t kind = fields.number();
  if (kind == static_cast<std::uint64_t>(Location::Kind::python)) {
    location.file.value = fields.id(definitions.strings.size());
    location.function.value = fields.id(definitions.strings.size());
    location.line = fields.number32();
    if (!fields.at_end()) location.nn_module.value = fields.id(definitions.nn_modules.size());
    if (!fields.at_end()) {
      const std::uint64_t graph = fields.number();
      const bool known = graph < static_cast<std::uint64_t>(CompiledGraph::unknown);
      location.graph = known ? CompiledGraph{static_cast<std::uint8_t>(graph)} : CompiledGraph::unknown;
      location.source_nodes.value = fields.id(definitions.strings.size());
    }
  } else if (kind == static_cast<std::uint64_t>(Location::Kind::native)) {
    location.kind = Location::Kind::native;
    location.module.value = fields.id(definitions.modules.size());
    location.offset = fields.number();
  }  // a kind of later versions: the entry stays, nameless, so that the ids after it are right
  return location;
}

ModelTensor read_tensor(FieldReader& fields, const Definitions& definitions) {
  ModelTensor tensor;
  tensor.role = static_cast<ModelTensor::Role>(fields.number());
  tensor.device.type = static_cast<DeviceType>(fields.integer());
  tensor.device.index = static_cast<std::int8_t>(fields.integer());
  tensor.requires_grad = (fields.number() & 1) != 0;
  tensor.time_ns = fields.number();
  tensor.address = fields.number();
  tensor.storage_bytes = fields.number();
  tensor.bytes = fields.number();
  tensor.module.value = fields.id(definitions.nn_modules.size());
  tensor.name.value = fields.id(definitions.strings.size());
  tensor.state.value = fields.id(definitions.strings.size());
  tensor.dtype.value = fields.id(definitions.strings.size());
  // Each dimension takes a byte at least: a number that is too large ends with the record.
  for (std::uint64_t left = fields.number(); left > 0 && fields.ok(); --left) tensor.shape.push_back(fields.number());
  return tensor;
}

/// What a record of this kind adds to its table, besides its text.
std::size_t entry_bytes(std::uint64_t kind) {
  if (kind > static_cast<std::uint64_t>(kLastKind)) return 0;
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::string:
      return sizeof(std::string);
    case RecordKind::location:
      return sizeof(Location);
    case RecordKind::stack:
      return sizeof(StackNode);
    case RecordKind::thread:
      return sizeof(ThreadInfo);
    case RecordKind::module:
      return sizeof(ModuleInfo);
    case RecordKind::loss:
      return sizeof(Loss);
    case RecordKind::mark:
      return sizeof(Mark);
    case RecordKind::nn_module:
      return sizeof(NnModule);
    case RecordKind::tensor:
      return sizeof(ModelTensor);
    case RecordKind::autograd_node:
      return sizeof(AutogradNode);
    case RecordKind::nn_module_name:
      return sizeof(NnModuleName);
    case RecordKind::process:
    case RecordKind::end:
      break;
  }
  return 0;
}

/// False for a kind that this code does not know.
bool read_record(std::uint64_t kind, FieldReader& fields, Definitions& definitions) {
  if (kind > static_cast<std::uint64_t>(kLastKind)) return false;
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::process:
      definitions.process = read_process(fields);
      return true;
    case RecordKind::string:
      definitions.strings.push_back(fields.text());
      return true;
    case RecordKind::location:
      definitions.locations.push_back(read_location(fields, definitions));
      return true;
    case RecordKind::stack: {
      const std::uint32_t parent = fields.id_before(definitions.stacks.size());
      definitions.stacks.push_back({{parent}, {fields.id(definitions.locations.size())}});
      return true;
    }
    case RecordKind::thread: {
      const auto tid = unless_negative(fields.integer());
      definitions.threads.push_back({tid, fields.text()});
      return true;
    }
    case RecordKind::module: {
      ModuleInfo module;
      module.path.value = fields.id(definitions.strings.size());
      module.load_address = fields.number();
      module.build_id = fields.text();
      definitions.modules.push_back(std::move(module));
      return true;
    }
    case RecordKind::loss: {
      Loss loss;
      const std::uint64_t code = fields.number();
      loss.kind = code < kStoredLossCount ? static_cast<Loss::Kind>(code) : Loss::Kind::unknown_loss;
      loss.count = fields.number();
      loss.text = fields.text();
      if (!fields.at_end()) loss.limit = fields.number();
      definitions.losses.push_back(std::move(loss));
      return true;
    }
    case RecordKind::mark: {
      Mark mark;
      const std::uint64_t kind_code = fields.number();
      if (kind_code <= static_cast<std::uint64_t>(Mark::Kind::range_end))
        mark.kind = Mark::Kind{static_cast<std::uint8_t>(kind_code)};
      mark.time_ns = fields.number();
      mark.name.value = fields.id(definitions.strings.size());
      mark.thread.value = fields.id(definitions.threads.size());
      definitions.marks.push_back(mark);
      return true;
    }
    case RecordKind::nn_module:
      definitions.nn_modules.push_back({fields.number()});
      return true;
    case RecordKind::nn_module_name: {
      NnModuleName name;
      name.module.value = fields.id(definitions.nn_modules.size());
      name.root.value = fields.id(definitions.nn_modules.size());
      name.path.value = fields.id(definitions.strings.size());
      name.type.value = fields.id(definitions.strings.size());
      definitions.nn_module_names.push_back(name);
      return true;
    }
    case RecordKind::tensor:
      definitions.tensors.push_back(read_tensor(fields, definitions));
      return true;
    case RecordKind::autograd_node: {
      const StringId type{fields.id(definitions.strings.size())};
      definitions.autograd_nodes.push_back({type, {fields.id(definitions.threads.size())}});
      return true;
    }
    case RecordKind::end: {
      const std::uint64_t time = fields.number();
      definitions.end = EndInfo{time, (fields.number() & 1) != 0};
      return true;
    }
  }
  return false;
}

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
    fields.number(static_cast<std::uint8_t>(location.kind));
    if (python) {
      fields.number(first).number(second).number(location.line);
      const bool compiled = graph != 0 || source_nodes != 0;
      if (nn_module != 0 || compiled) fields.number(nn_module);
      if (compiled) fields.number(graph).number(source_nodes);
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

Result<void> DefinitionDecoder::decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes,
                                       Definitions& definitions, const RecordObserver& observe) {
  memory_allowed_ += kMemoryPerStoredByte * stored_bytes;
  FieldReader records(payload);
  while (!records.at_end()) {
    const std::uint64_t kind = records.number();
    const auto body = records.bytes();
    if (!records.ok()) return Error{"a definition is longer than its frame"};
    memory_used_ += entry_bytes(kind) + body.size();
    if (memory_used_ > memory_allowed_) {
      return Error{fmt::format("its definitions take more than {} times their bytes in the file, as no recording's do",
                               kMemoryPerStoredByte)};
    }
    FieldReader fields(body);
    if (!read_record(kind, fields, definitions)) ++unknown_records_;
    // Bytes left over are fields that later versions added.
    if (!fields.ok()) return Error{"a definition is cut short, or refers to what was never defined"};
    if (observe) observe(static_cast<RecordKind>(kind));
  }
  return {};
}

}  // namespace tidemark
