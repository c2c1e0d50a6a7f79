// Recordings of a model in training: modules in stacks, their names, tensors, autograd nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "unit/store/store_scenario.h"

namespace tidemark::testing {

inline const std::string kPackages = "/venv/lib/python3.11/site-packages/";

class ModelScenario : public Scenario {
 public:
  /// An outermost module.
  NnModuleId root(const std::string& type) {
    const NnModuleId object = unnamed_module();
    definitions.nn_module_names.push_back({object, object, name_id(""), name_id(type)});
    return object;
  }
  NnModuleId module(NnModuleId root, const std::string& path, const std::string& type) {
    const NnModuleId object = unnamed_module();
    definitions.nn_module_names.push_back({object, root, name_id(path), name_id(type)});
    return object;
  }
  NnModuleId unnamed_module() {
    definitions.nn_modules.push_back({0x1000 * (1 + definitions.nn_modules.size())});
    return NnModuleId{static_cast<std::uint32_t>(definitions.nn_modules.size() - 1)};
  }

  /// The frame of PyTorch that calls the module.
  LocationId call(NnModuleId module) {
    const LocationId location = python("Module._wrapped_call_impl", kPackages + "torch/nn/modules/module.py", 1779);
    definitions.locations.back().nn_module = module;
    return location;
  }
  /// A frame of a package: "torch/optim/adam.py".
  LocationId package(const std::string& file, const std::string& function, std::uint32_t line = 1) {
    return python(function, kPackages + file, line);
  }
  LocationId script(std::uint32_t line) { return python("<module>", "/home/user/train.py", line); }

  AutogradNodeId node(const std::string& type, ThreadId forward_thread) {
    definitions.autograd_nodes.push_back({name_id(type), forward_thread});
    return AutogradNodeId{static_cast<std::uint32_t>(definitions.autograd_nodes.size() - 1)};
  }
  /// The latest event is an allocation of a thread that makes node `sequence` next.
  void at_sequence(std::uint64_t sequence) { events.back().sequence = sequence; }
  /// The latest event is an allocation by node number `sequence` of its forward thread.
  void in_node(AutogradNodeId node, std::uint64_t sequence) {
    events.back().node = node;
    events.back().node_sequence = sequence;
  }

  /// The program reports that the latest event's block holds this tensor, `offset` bytes from its beginning.
  ModelTensor& tensor(ModelTensor::Role role, std::uint64_t time_ns, NnModuleId module, const std::string& name,
                      std::uint64_t offset = 0) {
    const Event& block = events.back();
    ModelTensor tensor;
    tensor.role = role;
    tensor.device = block.device;
    tensor.requires_grad = true;
    tensor.time_ns = time_ns;
    tensor.address = block.address + offset;
    tensor.storage_bytes = block.size - offset;
    tensor.bytes = tensor.storage_bytes;
    tensor.module = module;
    tensor.name = name_id(name);
    tensor.dtype = name_id("float32");
    tensor.shape = {tensor.bytes / 4};
    definitions.tensors.push_back(tensor);
    return definitions.tensors.back();
  }
};

/// "model.layers.0"; "-" if the block's module is unknown.
inline std::string module_of(const Attribution& attribution, const Owner& owner) {
  return owner.module.valid() ? attribution.modules.at(owner.module.value).path : "-";
}

}  // namespace tidemark::testing
