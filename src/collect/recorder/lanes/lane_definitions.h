// The definitions received on a lane: its code objects, modules and stacks, as ids of the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collect/recorder/lanes/generated_file.h"
#include "collect/recorder/lanes/nn_modules.h"
#include "collect/ring/layout.h"
#include "trace/kept_definitions.h"
#include "trace/recording_writer.h"

namespace tidemark {

/// `ok` turns false if the fields run past the definition's end.
class DefinitionFields {
 public:
  explicit DefinitionFields(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    T value{};
    const std::string_view raw = take(sizeof(T));
    if (ok) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  /// Text of a Python str, as UTF-8: {u8 bytes for each code point, text}.
  std::string python();

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  bool ok = true;

 private:
  std::string_view take(std::size_t size) {
    if (!ok || size > rest_.size()) {
      ok = false;
      return {};
    }
    const std::string_view taken(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
};

/// Tensors of a model. The reader of the lane writes them, because it has the clock.
struct ModelTensors {
  std::uint64_t ticks = 0;
  std::vector<ModelTensor> tensors;  ///< without time
};

/// Reads the names up to the first invalid entry, which sets `fields.ok` to false.
ModelTensors read_model(DefinitionFields& fields, NnModules& modules, RecordingWriter& writer);

/// The content of a `process` definition.
struct ProcessFacts {
  std::optional<std::int32_t> rank;
  std::optional<std::int32_t> local_rank;
  std::optional<std::int32_t> world_size;
  std::string python_version;
  std::string reporting_library;
  std::optional<std::string> allocator_settings;  ///< nullopt: unknown
};

/// A `mark` definition: the program's own name for a moment.
struct LaneMark {
  Mark::Kind kind = Mark::Kind::point;
  std::uint64_t ticks = 0;
  StringId name;
};

/// An `autograd_node` definition: an AutogradNode with autograd's own number of its thread.
struct LaneNode {
  StringId type;
  std::uint64_t thread_number = 0;
};

/// One for each lane of a recorded process. Not thread-safe.
class LaneDefinitions {
 public:
  /// `nn_modules` belongs to the process.
  explicit LaneDefinitions(NnModules& nn_modules) : nn_modules_(nn_modules) {}

  /// Adds a piece of a definition. False if the pieces are invalid.
  bool blob(const ring::RecordHeader& header, std::span<const std::uint64_t> fields, RecordingWriter& writer);

  void reset();

  /// Adds the definitions that later records of the lane may refer to.
  void keep(KeptDefinitions& definitions) const;

  /// The stack with the lane's number; invalid if it is not defined.
  [[nodiscard]] StackId stack(std::uint32_t number) const;
  /// The lane's current thread; invalid before the first.
  [[nodiscard]] ThreadId thread() const { return thread_; }
  /// The autograd node with the lane's number; std::nullopt if it is not defined.
  [[nodiscard]] std::optional<LaneNode> autograd_node(std::uint32_t number) const;
  /// Set by the latest `process` definition; the reader takes it.
  std::unique_ptr<ProcessFacts> process_facts;
  /// Set by the latest `mark` definition; the reader takes it.
  std::optional<LaneMark> mark;
  /// Set by the latest `model` definition; the reader takes it.
  std::optional<ModelTensors> model;
  /// Whether Python ran the loop of a worker of a torch.utils.data.DataLoader.
  [[nodiscard]] bool has_worker_loop() const { return has_worker_loop_; }
  /// Set by the latest `autograd_thread` definition; the reader takes it.
  std::optional<std::uint64_t> thread_number;

 private:
  using Fields = DefinitionFields;
  struct PythonPlace {
    LocationId location;
    std::uint32_t line = 0;
  };
  struct Code {
    StringId file;
    StringId function;
    std::uint16_t python_version = 0;
    std::uint32_t first_line = 0;
    std::uint32_t code_offset = 0;
    std::vector<std::byte> line_table;
    std::string generated_path;                ///< path of a file that torch.compile generated; empty for other files
    const GeneratedFile* generated = nullptr;  ///< null until its lines are defined
    std::unordered_map<std::uint64_t, PythonPlace> places;  ///< by module and instruction
  };
  struct Module {
    std::uint64_t end = 0;
    std::uint64_t load_address = 0;
    ModuleId id;
    // Frames of CUPTI and of this library, which say nothing about the program.
    bool cupti = false;
    bool ours = false;
  };

  bool define(RecordingWriter& writer);
  bool define_code(Fields& fields, RecordingWriter& writer);
  bool define_module(Fields& fields, RecordingWriter& writer);
  bool define_stack(Fields& fields, RecordingWriter& writer);
  bool define_mark(Fields& fields, RecordingWriter& writer);
  bool define_autograd_node(Fields& fields, RecordingWriter& writer);
  std::vector<NnModuleId> read_nn_modules(Fields& fields, std::uint32_t frames, RecordingWriter& writer);
  bool define_lines(Fields& fields, RecordingWriter& writer);
  /// Redefines the stacks that awaited the lines just defined.
  void redefine_stacks(RecordingWriter& writer);
  /// Reads a stack definition, after its number. `awaits_lines` turns true if lines of a frame are not defined yet.
  StackId read_stack(Fields& fields, RecordingWriter& writer, bool& awaits_lines);
  /// Appends a frame, preceded by the source lines that it was compiled from, as its callees.
  void add_python_frame(Code& code, std::uint32_t instruction, NnModuleId nn_module, RecordingWriter& writer,
                        std::vector<LocationId>& innermost_first);
  PythonPlace python_place(Code& code, std::uint32_t instruction, NnModuleId nn_module, RecordingWriter& writer);
  LocationId native_location(std::uint64_t address, RecordingWriter& writer);
  /// The module of the call that returns to `address`, or null.
  [[nodiscard]] const Module* module_of(std::uint64_t address) const;

  NnModules& nn_modules_;
  std::vector<std::byte> pending_;  ///< pieces of the definition that is being received
  bool receiving_ = false;
  bool has_worker_loop_ = false;
  ThreadId thread_;
  std::unordered_map<std::uint64_t, Code> codes_;
  std::map<std::uint64_t, Module> modules_;  ///< by start
  std::vector<StackId> stacks_;
  std::vector<LaneNode> autograd_nodes_;
  std::unordered_map<std::string, GeneratedFile> generated_files_;  ///< by path, which determines the content: never
                                                                    ///< reset
  std::map<std::uint32_t, std::vector<std::byte>> awaiting_lines_;  ///< stack number → its definition
};

}  // namespace tidemark
