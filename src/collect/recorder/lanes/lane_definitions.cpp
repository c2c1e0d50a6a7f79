#include "collect/recorder/lanes/lane_definitions.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/demangle.h"
#include "base/inductor_file.h"
#include "collect/recorder/lanes/python_lines.h"
#include "collect/ring/layout.h"

namespace tidemark {

namespace {

constexpr std::size_t kLargestDefinition = 16 << 20;
constexpr std::string_view kPreloadedLibrary = "libtidemark_preload.so";
constexpr std::size_t kMaxAwaitingLines = 1024;  // stacks; later ones stay without source lines

std::string hex(std::string_view raw) {
  std::string out;
  for (const char byte : raw) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

constexpr std::size_t kMaxDimensions = 64;  // PyTorch's own limit

bool read_tensor(DefinitionFields& fields, std::uint64_t generation, NnModules& modules, RecordingWriter& writer,
                 ModelTensor& tensor) {
  const auto role = fields.number<std::uint8_t>();
  tensor.role = static_cast<ModelTensor::Role>(role);
  tensor.device.type = static_cast<DeviceType>(fields.number<std::int8_t>());
  tensor.device.index = fields.number<std::int8_t>();
  tensor.requires_grad = fields.number<std::uint8_t>() == 1;
  tensor.address = fields.number<std::uint64_t>();
  tensor.storage_bytes = fields.number<std::uint64_t>();
  tensor.bytes = fields.number<std::uint64_t>();
  const auto module = fields.number<std::uint64_t>();
  const std::string_view name = fields.text();
  const std::string_view state = fields.text();
  const std::string_view dtype = fields.text();
  tensor.shape.resize(fields.number<std::uint8_t>());
  if (tensor.shape.size() > kMaxDimensions) return false;
  for (std::uint64_t& size : tensor.shape) size = fields.number<std::uint64_t>();
  if (!fields.ok || role < static_cast<std::uint8_t>(ModelTensor::Role::parameter) ||
      role > static_cast<std::uint8_t>(ModelTensor::Role::optimizer_state)) {
    return false;
  }
  if (module != 0) tensor.module = modules.id(module, generation, writer);
  tensor.name = writer.string(name);
  if (!state.empty()) tensor.state = writer.string(state);
  tensor.dtype = writer.string(dtype);
  return true;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | ((code_point >> 18) & 0x07));
    out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

// Text of a Python str: 1, 2 or 4 bytes for each code point. Lone surrogates become U+FFFD.
std::string python_text(std::uint8_t kind, std::string_view raw) {
  std::string out;
  if (kind != 1 && kind != 2 && kind != 4) return "?";
  for (std::size_t at = 0; at + kind <= raw.size(); at += kind) {
    std::uint32_t code_point = 0;
    std::memcpy(&code_point, raw.data() + at, kind);
    const bool valid = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    append_utf8(out, valid ? code_point : 0xFFFD);
  }
  return out;
}

}  // namespace

bool LaneDefinitions::blob(const ring::RecordHeader& header, std::span<const std::uint64_t> fields,
                           RecordingWriter& writer) {
  const auto flags = static_cast<std::uint8_t>(header.device_type);
  if (header.stack > fields.size_bytes()) return false;
  if ((flags & ring::kBlobFirst) != 0) {
    pending_.clear();
    receiving_ = true;
  }
  if (!receiving_) return true;  // the rest of a definition that did not fit
  if (pending_.size() + header.stack > kLargestDefinition) return false;
  const auto bytes = std::as_bytes(fields).first(header.stack);
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  if ((flags & ring::kBlobLast) == 0) return true;
  receiving_ = false;
  return define(writer);
}

bool LaneDefinitions::define(RecordingWriter& writer) {
  Fields fields(pending_);
  switch (static_cast<ring::DefinitionKind>(fields.number<std::uint32_t>())) {
    case ring::DefinitionKind::thread: {
      const auto tid = fields.number<std::uint32_t>();
      const std::string name(fields.text());
      if (fields.ok) thread_ = writer.thread({tid, name});
      return fields.ok;
    }
    case ring::DefinitionKind::process: {
      auto facts = std::make_unique<ProcessFacts>();
      facts->rank = unless_negative(fields.number<std::int32_t>());
      facts->local_rank = unless_negative(fields.number<std::int32_t>());
      facts->world_size = unless_negative(fields.number<std::int32_t>());
      facts->python_version = fields.text();
      facts->reporting_library = fields.text();
      if (fields.ok && !fields.at_end()) facts->allocator_settings = fields.text();  // an older library has none
      if (fields.ok) process_facts = std::move(facts);
      return fields.ok;
    }
    case ring::DefinitionKind::code:
      return define_code(fields, writer);
    case ring::DefinitionKind::module:
      return define_module(fields, writer);
    case ring::DefinitionKind::stack:
      return define_stack(fields, writer);
    case ring::DefinitionKind::mark:
      return define_mark(fields, writer);
    case ring::DefinitionKind::model:
      model = read_model(fields, nn_modules_, writer);
      return fields.ok;
    case ring::DefinitionKind::module_death: {
      const auto address = fields.number<std::uint64_t>();
      const auto generation = fields.number<std::uint64_t>();
      if (fields.ok) nn_modules_.died(address, generation, writer);
      return fields.ok;
    }
    case ring::DefinitionKind::autograd_node:
      return define_autograd_node(fields, writer);
    case ring::DefinitionKind::autograd_thread: {
      const auto number = fields.number<std::uint64_t>();
      if (fields.ok) thread_number = number;
      return fields.ok;
    }
    case ring::DefinitionKind::lines:
      return define_lines(fields, writer);
    case ring::DefinitionKind::loss: {
      const auto code = fields.number<std::uint32_t>();
      const std::string detail(fields.text());
      if (!fields.ok || code >= kStoredLossCount) return false;
      writer.loss({static_cast<QualityId>(code), 1, detail});
      return true;
    }
  }
  return false;
}

bool LaneDefinitions::define_code(Fields& fields, RecordingWriter& writer) {
  const auto address = fields.number<std::uint64_t>();
  Code code;
  code.python_version = static_cast<std::uint16_t>(fields.number<std::uint32_t>());
  code.first_line = fields.number<std::uint32_t>();
  code.code_offset = fields.number<std::uint32_t>();
  std::string file = fields.python();
  code.file = writer.string(file);
  const std::string function = fields.python();
  code.function = writer.string(function);
  has_worker_loop_ |= function == "_worker_loop" && file.ends_with("/torch/utils/data/_utils/worker.py");
  const std::string_view table = fields.text();
  const auto bytes = std::as_bytes(std::span(table.data(), table.size()));
  code.line_table.assign(bytes.begin(), bytes.end());
  if (is_inductor_file(file.data(), file.size())) {
    const auto generated = generated_files_.find(file);
    if (generated != generated_files_.end()) code.generated = &generated->second;
    code.generated_path = std::move(file);
  }
  if (fields.ok) codes_[address] = std::move(code);
  return fields.ok;
}

bool LaneDefinitions::define_module(Fields& fields, RecordingWriter& writer) {
  const auto start = fields.number<std::uint64_t>();
  Module module;
  module.end = fields.number<std::uint64_t>();
  module.load_address = fields.number<std::uint64_t>();
  ModuleInfo info;
  const std::string_view path = fields.text();
  info.build_id = hex(fields.text());
  if (!fields.ok) return false;
  info.path = writer.string(path);
  const std::string_view file = path.substr(path.rfind('/') + 1);
  module.cupti = file.starts_with("libcupti.so");
  module.ours = file == kPreloadedLibrary;
  info.load_address = module.load_address;
  module.id = writer.module(info);
  modules_[start] = module;
  return true;
}

// The module that each Python frame calls.
std::vector<NnModuleId> LaneDefinitions::read_nn_modules(Fields& fields, std::uint32_t frames,
                                                         RecordingWriter& writer) {
  std::vector<NnModuleId> found(frames);
  const auto count = fields.number<std::uint32_t>();
  const auto generation = count > 0 ? fields.number<std::uint64_t>() : 0;
  for (std::uint32_t index = 0; fields.ok && index < count; ++index) {
    const auto frame = fields.number<std::uint32_t>();
    const auto address = fields.number<std::uint64_t>();
    fields.ok = fields.ok && frame < frames;
    if (fields.ok) found[frame] = nn_modules_.id(address, generation, writer);
  }
  return found;
}

bool LaneDefinitions::define_stack(Fields& fields, RecordingWriter& writer) {
  const auto number = fields.number<std::uint32_t>();
  if (number != stacks_.size()) return false;
  bool awaits_lines = false;
  const StackId stack = read_stack(fields, writer, awaits_lines);
  stacks_.push_back(fields.ok ? stack : StackId{});  // the numbers of later stacks must stay right
  if (awaits_lines && awaiting_lines_.size() < kMaxAwaitingLines) awaiting_lines_[number] = pending_;
  return fields.ok;
}

StackId LaneDefinitions::read_stack(Fields& fields, RecordingWriter& writer, bool& awaits_lines) {
  const auto python_count = fields.number<std::uint32_t>();
  const auto native_count = fields.number<std::uint32_t>();
  fields.ok &= python_count <= ring::kMaxFrames && native_count <= ring::kMaxFrames;
  const std::vector<NnModuleId> nn_modules = read_nn_modules(fields, fields.ok ? python_count : 0, writer);
  std::vector<LocationId> python;  // innermost first
  for (std::uint32_t index = 0; fields.ok && index < python_count; ++index) {
    Code& code = codes_[fields.number<std::uint64_t>()];
    awaits_lines |= !code.generated_path.empty() && code.generated == nullptr;
    add_python_frame(code, fields.number<std::uint32_t>(), nn_modules[index], writer, python);
  }
  std::vector<LocationId> native;
  bool cupti = true;  // only the innermost frames: CUPTI's own frames say nothing about the program
  for (std::uint32_t index = 0; fields.ok && index < native_count; ++index) {
    const auto address = fields.number<std::uint64_t>();
    const Module* module = module_of(address);
    cupti = cupti && module != nullptr && module->cupti;
    if (!cupti && !(module != nullptr && module->ours)) native.push_back(native_location(address, writer));
  }
  StackId stack;
  for (const std::vector<LocationId>& frames : {python, native}) {
    for (auto location = frames.rbegin(); location != frames.rend(); ++location) stack = writer.stack(stack, *location);
  }
  return stack;
}

bool LaneDefinitions::define_lines(Fields& fields, RecordingWriter& writer) {
  const std::string path = fields.python();
  if (!fields.ok || !is_inductor_file(path.data(), path.size())) return false;
  if (generated_files_.contains(path)) return true;
  // The file may be gone, or on another file system; the line numbers are known anyway.
  GeneratedFile file(generated_comments(read_generated_file(path).value_or("")));
  while (fields.ok && !fields.at_end()) {
    const auto line = fields.number<std::uint32_t>();
    const auto trace = fields.number<std::uint32_t>();
    if (trace == file.trace_count() + 1) file.add_trace(fields.python());
    file.add(line, trace);
  }
  if (!fields.ok) return false;
  const GeneratedFile& added = generated_files_.emplace(path, std::move(file)).first->second;
  for (auto& [address, code] : codes_) {
    if (code.generated_path != path) continue;
    code.generated = &added;
    code.places.clear();
  }
  redefine_stacks(writer);
  return true;
}

void LaneDefinitions::redefine_stacks(RecordingWriter& writer) {
  for (auto entry = awaiting_lines_.begin(); entry != awaiting_lines_.end();) {
    Fields stack(entry->second);
    stack.number<std::uint32_t>();  // kind of the definition
    stack.number<std::uint32_t>();  // its number
    bool awaits_lines = false;
    stacks_[entry->first] = read_stack(stack, writer, awaits_lines);
    entry = awaits_lines ? std::next(entry) : awaiting_lines_.erase(entry);
  }
}

bool LaneDefinitions::define_mark(Fields& fields, RecordingWriter& writer) {
  const auto kind = fields.number<std::uint32_t>();
  LaneMark found;
  found.ticks = fields.number<std::uint64_t>();
  const std::string_view name = fields.text();
  if (!fields.ok || kind > static_cast<std::uint32_t>(ring::MarkKind::range_end)) return false;
  if (name.size() > ring::kMarkNameBytes) return false;
  found.kind = static_cast<Mark::Kind>(kind);  // the numbers are the same
  found.name = writer.string(name);
  mark = found;
  return true;
}

bool LaneDefinitions::define_autograd_node(Fields& fields, RecordingWriter& writer) {
  const auto number = fields.number<std::uint32_t>();
  LaneNode node;
  node.thread_number = fields.number<std::uint64_t>();
  const bool python = fields.number<std::uint32_t>() != 0;
  const std::string name(fields.text());
  if (!fields.ok || number != autograd_nodes_.size() || name.size() > ring::kNodeNameBytes) return false;
  if (!name.empty()) node.type = writer.string(python ? name : demangle("_Z" + name));
  autograd_nodes_.push_back(node);
  return true;
}

void LaneDefinitions::add_python_frame(Code& code, std::uint32_t instruction, NnModuleId nn_module,
                                       RecordingWriter& writer, std::vector<LocationId>& innermost_first) {
  const PythonPlace place = python_place(code, instruction, nn_module, writer);
  if (code.generated != nullptr) {
    const std::vector<SourceFrame>& sources = code.generated->sources(place.line);
    for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
      Location location;
      location.file = writer.string(source->file);
      location.function = writer.string(source->function);
      location.line = source->line;
      location.graph = code.generated->graph();
      innermost_first.push_back(writer.location(location));
    }
  }
  innermost_first.push_back(place.location);
}

LaneDefinitions::PythonPlace LaneDefinitions::python_place(Code& code, std::uint32_t instruction, NnModuleId nn_module,
                                                           RecordingWriter& writer) {
  if (!code.file.valid()) code.file = code.function = writer.string("?");
  const std::uint64_t key = std::uint64_t{nn_module.value} << 32 | instruction;
  const auto known = code.places.find(key);
  if (known != code.places.end()) return known->second;
  const std::uint32_t offset = python_bytecode_offset(code.python_version, instruction, code.code_offset);
  Location location;
  location.kind = Location::Kind::python;
  location.file = code.file;
  location.function = code.function;
  location.line = python_line(code.python_version, code.line_table, code.first_line, offset);
  location.nn_module = nn_module;
  if (code.generated != nullptr) {
    const std::string_view nodes = code.generated->nodes(location.line);
    location.graph = code.generated->graph();
    if (!nodes.empty()) location.source_nodes = writer.string(nodes);
  }
  return code.places[key] = {writer.location(location), location.line};
}

LocationId LaneDefinitions::native_location(std::uint64_t address, RecordingWriter& writer) {
  Location location;
  location.kind = Location::Kind::native;
  location.offset = address - 1;  // inside the call, not after it
  if (const Module* module = module_of(address)) {
    location.module = module->id;
    location.offset -= module->load_address;
  }
  return writer.location(location);
}

const LaneDefinitions::Module* LaneDefinitions::module_of(std::uint64_t address) const {
  const std::uint64_t call = address - 1;
  const auto after = modules_.upper_bound(call);
  if (after == modules_.begin()) return nullptr;
  const Module& module = std::prev(after)->second;
  return call < module.end ? &module : nullptr;
}

StackId LaneDefinitions::stack(std::uint32_t number) const {
  return number < stacks_.size() ? stacks_[number] : StackId{};
}

std::optional<LaneNode> LaneDefinitions::autograd_node(std::uint32_t number) const {
  return number < autograd_nodes_.size() ? std::optional(autograd_nodes_[number]) : std::nullopt;
}

void LaneDefinitions::keep(KeptDefinitions& definitions) const {
  definitions.keep(thread_);
  for (const auto& [address, code] : codes_) {
    definitions.keep(code.file);
    definitions.keep(code.function);
    for (const auto& [key, place] : code.places) definitions.keep(place.location);
  }
  for (const auto& [start, module] : modules_) definitions.keep(module.id);
  for (const StackId stack : stacks_) definitions.keep(stack);
  for (const LaneNode& node : autograd_nodes_) definitions.keep(node.type);
}

void LaneDefinitions::reset() {
  codes_.clear();
  modules_.clear();
  stacks_.clear();
  autograd_nodes_.clear();
  awaiting_lines_.clear();
}

ModelTensors read_model(DefinitionFields& fields, NnModules& modules, RecordingWriter& writer) {
  ModelTensors found;
  const auto generation = fields.number<std::uint64_t>();
  found.ticks = fields.number<std::uint64_t>();
  while (fields.ok && !fields.at_end()) {
    switch (static_cast<ring::ModelEntry>(fields.number<std::uint8_t>())) {
      case ring::ModelEntry::module: {
        const auto address = fields.number<std::uint64_t>();
        NnModules::Name name{found.ticks, generation, fields.number<std::uint64_t>(), {}, {}};
        const std::string_view path = fields.text();
        const std::string_view type = fields.text();
        if (!fields.ok) return found;
        name.path = writer.string(path);
        name.type = writer.string(type);
        modules.name(address, name, writer);
        continue;
      }
      case ring::ModelEntry::tensor: {
        ModelTensor tensor;
        fields.ok = read_tensor(fields, generation, modules, writer, tensor);
        if (fields.ok) found.tensors.push_back(std::move(tensor));
        continue;
      }
    }
    fields.ok = false;
  }
  return found;
}

std::string DefinitionFields::python() {
  const auto kind = number<std::uint8_t>();
  return python_text(kind, text());
}

}  // namespace tidemark
