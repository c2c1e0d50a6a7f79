#include "trace/definition_decoder.h"

#include <fmt/format.h>

#include "trace/record_fields.h"

namespace tidemark {
namespace {

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
