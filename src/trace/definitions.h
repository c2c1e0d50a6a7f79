// The tables that events refer to. A recording defines each entry before the first event that uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/ids.h"
#include "trace/event.h"
#include "trace/quality_id.h"

namespace tidemark {

/// Files and rings store a negative number for an unknown pid, tid or rank.
template <typename Number>
[[nodiscard]] constexpr std::optional<Number> unless_negative(Number value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

/// Who was recorded, and when. Unknown values are empty or nullopt, never a guess.
struct ProcessInfo {
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> parent_pid;
  std::optional<std::int32_t> rank;  ///< these three as the launcher put them into the environment
  std::optional<std::int32_t> local_rank;
  std::optional<std::int32_t> world_size;
  std::string hostname;
  std::string command_line;      ///< arguments joined by spaces
  std::string python_version;    ///< "3.11.7"; empty when no interpreter was found
  std::string torch_version;     ///< empty when unknown
  std::string stack_mode;        ///< "none", "python", "native" or "both": as requested
  std::string recorder_version;  ///< of tidemark
  /// PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF of the environment; empty: not set; nullopt: unknown.
  std::optional<std::string> allocator_settings = {};
  std::optional<std::uint64_t> start_wall_ns;  ///< wall clock (ns since 1970, UTC) at time_ns == 0
};

/// A thread that made events.
struct ThreadInfo {
  std::optional<std::int64_t> tid;  ///< the kernel's
  std::string name;                 ///< as in /proc/PID/task/TID/comm; may be empty
};

/// A mapped ELF file that native locations point into.
struct ModuleInfo {
  StringId path;
  std::string build_id;            ///< hex, empty if the file has none
  std::uint64_t load_address = 0;  ///< load bias: address in memory - load_address = address in the file's symbol table
};

/// The graph of a model, compiled by torch.compile, that code belongs to.
enum class CompiledGraph : std::uint8_t {
  none = 0,  ///< not compiled
  forward = 1,
  backward = 2,
  inference = 3,  ///< a forward pass that was compiled without a backward pass
  unknown = 4,
};
inline constexpr EnumName<CompiledGraph> kCompiledGraphNames[] = {
    {CompiledGraph::forward, "forward"},
    {CompiledGraph::backward, "backward"},
    {CompiledGraph::inference, "inference"},
    {CompiledGraph::unknown, "unknown"},
};

/// One place in a program. Python: file, function, line. Native: module and offset, named when reading; or named by the
/// writer of the file (only in imported files), with the known ones of file, function and line.
struct Location {
  enum class Kind : std::uint8_t { python = 0, native = 1, named_native = 2 };
  Kind kind = Kind::python;
  StringId file;              ///< python, named_native
  StringId function;          ///< python: the qualified name if the interpreter has one; named_native
  std::uint32_t line = 0;     ///< python, named_native; 0 = unknown
  ModuleId module;            ///< native; invalid if the address was in no known module
  std::uint64_t offset = 0;   ///< native: return address - 1 - load_address, or the absolute address without a module
  NnModuleId nn_module = {};  ///< python: the torch.nn.Module that this frame calls; invalid in all other frames
  /// python: of a line that torch.compile generated, and of the program's lines that it was made from. In stacks these
  /// stand behind it as if it called them.
  CompiledGraph graph = CompiledGraph::none;
  StringId source_nodes =
      {};  ///< python: of a generated line: names of the graph's nodes that it stands for, "x, linear_1"
};

/// A node of the tree of stacks: a stack consists of its node's location and the locations of its parents up to the
/// root.
struct StackNode {
  StackId parent;  ///< invalid for an outermost frame; always smaller than this node's own id
  LocationId location;
};

/// A torch.nn.Module object with a call in a recorded stack, or contained in such a module. Two objects have two ids,
/// even if one got the address of the other after its death.
struct NnModule {
  std::uint64_t address = 0;  ///< of the Python object
};

/// The name of a module, read while the program runs: a module that was never found below an outermost module has no
/// name. A later name of the same module replaces an earlier one.
struct NnModuleName {
  NnModuleId module;
  NnModuleId root;  ///< the outermost module below which it was found; itself for an outermost module
  StringId path;    ///< dotted, below `root`: "model.layers.3.mlp"; "" for `root` itself
  StringId type;    ///< qualified name of its class: "torch.nn.modules.linear.Linear"
};

/// A tensor of a model or its optimizer at one time, read from the program's objects.
struct ModelTensor {
  enum class Role : std::uint8_t { parameter = 1, buffer = 2, gradient = 3, optimizer_state = 4 };
  Role role = Role::parameter;
  Device device;
  bool requires_grad = false;       ///< of the parameter
  std::uint64_t time_ns = 0;        ///< when the program's objects were read
  std::uint64_t address = 0;        ///< of the tensor's storage: a block's, or inside one
  std::uint64_t storage_bytes = 0;  ///< of the storage, which other tensors may share
  std::uint64_t bytes = 0;          ///< of the tensor: number of elements * bytes of one
  NnModuleId module;                ///< module of the parameter or buffer; invalid: unknown
  StringId name;                    ///< of the parameter or buffer in its module: "weight"
  StringId state;                   ///< optimizer_state: its key, "exp_avg"; otherwise invalid
  StringId dtype;                   ///< "float32"
  std::vector<std::uint64_t> shape;
};

inline constexpr EnumName<ModelTensor::Role> kTensorRoleNames[] = {
    {ModelTensor::Role::parameter, "parameter"},
    {ModelTensor::Role::buffer, "buffer"},
    {ModelTensor::Role::gradient, "gradient"},
    {ModelTensor::Role::optimizer_state, "optimizer_state"},
};

/// Properties shared by the autograd nodes that ran while memory was allocated: together with Event::node_sequence, one
/// node.
struct AutogradNode {
  StringId type;            ///< class: "torch::autograd::generated::AddmmBackward0"
  ThreadId forward_thread;  ///< thread of the node's forward pass; invalid: unknown
};

/// Something that is missing from the recording.
struct Loss {
  using Kind = QualityId;
  Kind kind = Kind::ring_full;
  std::uint64_t count = 0;  ///< in the unit of the table in trace/data_quality.h
  std::string text = {};    ///< a name, version or error that belongs to it; may be empty
  std::optional<std::uint64_t> limit =
      {};  ///< the reached limit: threads, frames of a stack, bytes of the file, devices
};

/// A named moment, or an end of a named range of time. Ranges nest and may overlap; an end belongs to the latest open
/// range of its name.
struct Mark {
  enum class Kind : std::uint8_t { point = 0, range_begin = 1, range_end = 2 };
  Kind kind = Kind::point;
  std::uint64_t time_ns = 0;
  StringId name;
  ThreadId thread;  ///< thread that made it; invalid if unknown
};

inline constexpr EnumName<Mark::Kind> kMarkKindNames[] = {
    {Mark::Kind::point, "point"},
    {Mark::Kind::range_begin, "range_begin"},
    {Mark::Kind::range_end, "range_end"},
};

/// How the recording ended. Absent when the recorder was killed.
struct EndInfo {
  std::uint64_t time_ns = 0;
  bool process_exited = false;  ///< the recorder saw the process end (otherwise recording stopped before it)
};

struct Definitions {
  ProcessInfo process;
  std::vector<std::string> strings;
  std::vector<Location> locations;
  std::vector<StackNode> stacks;
  std::vector<ThreadInfo> threads;
  std::vector<ModuleInfo> modules;
  std::vector<NnModule> nn_modules;
  std::vector<NnModuleName> nn_module_names;
  std::vector<ModelTensor> tensors;  ///< nearly in order of time
  std::vector<AutogradNode> autograd_nodes;
  std::vector<Loss> losses;
  std::vector<Mark> marks;  ///< in a recording nearly in order of time, in a Store exactly
  std::optional<EndInfo> end;

  /// Empty for an id that is invalid or not defined. Valid as long as `strings` does not change.
  [[nodiscard]] std::string_view text(StringId id) const {
    return id.value < strings.size() ? std::string_view(strings[id.value]) : std::string_view();
  }
};

/// Numbers of definitions that records and events may refer to.
struct DefinedIds {
  std::uint32_t strings = 0;
  std::uint32_t locations = 0;
  std::uint32_t stacks = 0;
  std::uint32_t threads = 0;
  std::uint32_t modules = 0;
  std::uint32_t nn_modules = 0;
  std::uint32_t autograd_nodes = 0;

  [[nodiscard]] static DefinedIds of(const Definitions& all) {
    const auto count = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
    return {count(all.strings), count(all.locations),  count(all.stacks),        count(all.threads),
            count(all.modules), count(all.nn_modules), count(all.autograd_nodes)};
  }
  /// Counts every id as defined.
  [[nodiscard]] static constexpr DefinedIds any() {
    constexpr std::uint32_t kAll = StringId::kNone;
    return {kAll, kAll, kAll, kAll, kAll, kAll, kAll};
  }

  [[nodiscard]] constexpr std::uint32_t count(StringId /*id*/) const { return strings; }
  [[nodiscard]] constexpr std::uint32_t count(LocationId /*id*/) const { return locations; }
  [[nodiscard]] constexpr std::uint32_t count(StackId /*id*/) const { return stacks; }
  [[nodiscard]] constexpr std::uint32_t count(ThreadId /*id*/) const { return threads; }
  [[nodiscard]] constexpr std::uint32_t count(ModuleId /*id*/) const { return modules; }
  [[nodiscard]] constexpr std::uint32_t count(NnModuleId /*id*/) const { return nn_modules; }
  [[nodiscard]] constexpr std::uint32_t count(AutogradNodeId /*id*/) const { return autograd_nodes; }
};

}  // namespace tidemark
