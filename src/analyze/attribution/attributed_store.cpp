#include "analyze/attribution/attributed_store.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/attribution/component_rules.h"
#include "analyze/attribution/module_paths.h"
#include "analyze/common/moment.h"
#include "store/symbols.h"

namespace tidemark {
namespace {

// Adds strings, locations and stacks, equal ones once.
class StackAdder {
 public:
  explicit StackAdder(Definitions& definitions) : definitions_(definitions) {}

  StringId string(std::string_view text) {
    const auto [entry, is_new] = strings_.try_emplace(std::string(text), StringId{});
    if (is_new) {
      entry->second = StringId{static_cast<std::uint32_t>(definitions_.strings.size())};
      definitions_.strings.push_back(entry->first);
    }
    return entry->second;
  }
  /// A Python frame that is no place in a file; `module`: the call of one.
  LocationId location(std::string_view function, NnModuleId module = {}) {
    const auto [entry, is_new] = locations_.try_emplace({std::string(function), module.valid()}, LocationId{});
    if (is_new) {
      entry->second = LocationId{static_cast<std::uint32_t>(definitions_.locations.size())};
      Location& location = definitions_.locations.emplace_back();
      location.function = string(function);
      location.nn_module = module;
    }
    return entry->second;
  }
  StackId push(StackId parent, LocationId location) {
    const auto [entry, is_new] = stacks_.try_emplace({parent, location}, StackId{});
    if (is_new) {
      entry->second = StackId{static_cast<std::uint32_t>(definitions_.stacks.size())};
      definitions_.stacks.push_back({parent, location});
    }
    return entry->second;
  }

 private:
  Definitions& definitions_;
  std::unordered_map<std::string, StringId> strings_;
  std::map<std::pair<std::string, bool>, LocationId> locations_;
  std::map<std::pair<StackId, LocationId>, StackId> stacks_;
};

// Stacks of allocations by autograd nodes.
class BackwardStacks {
 public:
  BackwardStacks(Definitions& definitions, const Attribution& attribution)
      : definitions_(definitions), modules_(attribution.modules), adder_(definitions) {}

  StackId of(StackId stack, AutogradNodeId node, const Owner& owner) {
    if (!node.valid() || node.value >= definitions_.autograd_nodes.size()) return stack;
    const bool by_forward_side = owner.forward_stack.valid();
    const Key key{stack, owner.forward_stack, by_forward_side ? ModulePathId{} : owner.module,
                  by_forward_side ? AutogradNodeId{} : node};
    const auto [entry, is_new] = made_.try_emplace(key, stack);
    if (is_new) entry->second = make(stack, node, owner);
    return entry->second;
  }

 private:
  using Key = std::tuple<StackId, StackId, ModulePathId, AutogradNodeId>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      const auto& [stack, forward, module, node] = key;
      const std::uint64_t first = std::uint64_t{stack.value} << 32 | forward.value;
      const std::uint64_t second = std::uint64_t{module.value} << 32 | node.value;
      return std::hash<std::uint64_t>()(first * 0x9E3779B97F4A7C15U + second);
    }
  };

  [[nodiscard]] bool is_python(LocationId location) const {
    return location.value < definitions_.locations.size() &&
           definitions_.locations[location.value].kind == Location::Kind::python;
  }
  // Whether the engine was called here: allocations of the node's own Python code are below it.
  [[nodiscard]] bool runs_engine(LocationId location) const {
    const std::string_view file = definitions_.text(definitions_.locations[location.value].file);
    return file.ends_with("torch/autograd/graph.py") || file.ends_with("torch/autograd/__init__.py");
  }

  StackId make(StackId stack, AutogradNodeId node, const Owner& owner) {
    const std::vector<LocationId> own = frames_of(definitions_, stack);
    const auto native = std::find_if(own.rbegin(), own.rend(), [&](LocationId frame) { return is_python(frame); });
    if (native != own.rend() && !runs_engine(*native)) return stack;
    StackId made;
    for (auto frame = own.begin(); frame != native.base(); ++frame) made = adder_.push(made, *frame);
    made = adder_.push(made, adder_.location(kBackwardFrame));
    if (owner.forward_stack.valid()) {
      std::vector<LocationId> forward = frames_of(definitions_, owner.forward_stack);
      while (!forward.empty() && !is_python(forward.back())) forward.pop_back();
      for (const LocationId frame : forward) made = adder_.push(made, frame);
    } else {
      if (owner.module.valid()) {
        made = adder_.push(made, adder_.location(modules_[owner.module.value].path, NnModuleId{0}));
      }
      const std::string type(definitions_.text(definitions_.autograd_nodes[node.value].type));
      made = adder_.push(made, adder_.location(std::string_view(type).substr(type.rfind(':') + 1)));
    }
    for (auto frame = native.base(); frame != own.end(); ++frame) made = adder_.push(made, *frame);
    return made;
  }

  Definitions& definitions_;
  const std::vector<ModulePath>& modules_;
  StackAdder adder_;
  std::unordered_map<Key, StackId, KeyHash> made_;
};

void name_module_calls(Definitions& definitions) {
  const ModulePaths modules = name_modules(definitions, ComponentRules::built_in());
  StackAdder adder(definitions);
  for (Location& location : definitions.locations) {
    const ModulePathId module = modules.of(location.nn_module);
    if (!module.valid() || !location.file.valid()) continue;  // frames without a file have a name already
    location.function = adder.string(modules.paths[module.value].path);
    location.file = {};
    location.line = 0;
  }
}

// Unites stacks that call modules of one path, whichever objects they are: a model constructed again in each step keeps
// its call sites. Stacks of modules without a path are united too.
void unite_module_calls(Store& store) {
  Definitions& definitions = store.definitions;
  using Place = std::tuple<StringId, StringId, std::uint32_t, CompiledGraph, StringId>;
  std::map<Place, LocationId> places;
  std::vector<LocationId> location_of;
  bool differs = false;
  for (const Location& location : definitions.locations) {
    const LocationId own{static_cast<std::uint32_t>(location_of.size())};
    LocationId& first = location_of.emplace_back(own);
    if (!location.nn_module.valid()) continue;
    const Place place{location.file, location.function, location.line, location.graph, location.source_nodes};
    first = places.try_emplace(place, own).first->second;
    differs |= first != own;
  }
  if (!differs) return;
  std::map<std::pair<StackId, LocationId>, StackId> stacks;
  std::vector<StackId> stack_of;
  for (const StackNode& node : definitions.stacks) {
    const StackId own{static_cast<std::uint32_t>(stack_of.size())};
    const StackId parent = node.parent.value < own.value ? stack_of[node.parent.value] : node.parent;
    const bool is_known = node.location.value < location_of.size();
    const LocationId location = is_known ? location_of[node.location.value] : node.location;
    stack_of.push_back(stacks.try_emplace({parent, location}, own).first->second);
  }
  const auto unite = [&](StackId& stack) {
    if (stack.value < stack_of.size()) stack = stack_of[stack.value];
  };
  for (StackId& stack : store.blocks.stack) unite(stack);
  for (OutOfMemory& failure : store.out_of_memory) unite(failure.stack);
  for (SegmentChange& change : store.segment_changes) unite(change.stack);
}

void find_stacks_at_peak(Store& store) {
  std::map<std::pair<std::size_t, StackId>, StackUsage> usages;
  for (std::size_t device = 0; device < store.devices.size(); ++device) {
    for (const BlockId block : live_blocks(store, device, store.devices[device].peak_change_count)) {
      const StackId stack = store.blocks.stack[block.value];
      StackUsage& usage = usages[{device, stack}];
      usage.device = static_cast<std::uint8_t>(device);
      usage.stack = stack;
      usage.bytes += store.blocks.size[block.value];
      ++usage.blocks;
    }
  }
  store.stacks_at_peak.clear();
  for (const auto& [key, usage] : usages) store.stacks_at_peak.push_back(usage);
}

}  // namespace

bool has_attribution(const Definitions& definitions) {
  return !definitions.nn_module_names.empty() || !definitions.tensors.empty() || !definitions.autograd_nodes.empty();
}

AttributedStore attribute(Store store, const ComponentRules& rules) {
  if (has_attribution(store.definitions)) {
    Attribution attribution = attribute_blocks(store, rules);
    return attribute(std::move(store), std::move(attribution));
  }
  AttributedStore attributed;
  static_cast<Store&>(attributed) = std::move(store);
  return attributed;
}

AttributedStore attribute(Store store, Attribution attribution) {
  AttributedStore attributed;
  static_cast<Store&>(attributed) = std::move(store);
  attributed.attribution = std::make_shared<const Attribution>(std::move(attribution));
  const Attribution& owners = *attributed.attribution;
  BackwardStacks backward(attributed.definitions, owners);
  Blocks& blocks = attributed.blocks;
  for (std::size_t block = 0; block < blocks.node.size(); ++block) {
    if (is_driver_memory(attributed.devices[blocks.device[block]].device)) continue;
    blocks.stack[block] = backward.of(blocks.stack[block], blocks.node[block], owners.blocks[block]);
  }
  for (std::size_t index = 0; index < attributed.out_of_memory.size(); ++index) {
    OutOfMemory& failure = attributed.out_of_memory[index];
    failure.stack = backward.of(failure.stack, failure.node, owners.out_of_memory[index]);
  }
  name_module_calls(attributed.definitions);
  unite_module_calls(attributed);
  find_stacks_at_peak(attributed);
  return attributed;
}

}  // namespace tidemark
