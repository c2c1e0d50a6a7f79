#include "collect/recorder/lanes/model_definition.h"

#include "collect/ring/layout.h"

namespace tidemark {
namespace {

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

}  // namespace

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

}  // namespace tidemark
