// Interns what events refer to, and packs new definitions into the records of definitions frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/definitions.h"
#include "trace/format.h"
#include "trace/frame_encoder.h"

namespace tidemark {

/// Not thread-safe. Keeps every string and key it was given, for as long as it lives.
class DefinitionEncoder {
 public:
  // The same argument gives the same id. An id inside an argument that is not defined here counts as none.
  StringId string(std::string_view text);
  LocationId location(const Location& location);
  StackId stack(StackId parent, LocationId location);
  ModuleId module(const ModuleInfo& module);

  AutogradNodeId autograd_node(const AutogradNode& node);

  ThreadId thread(const ThreadInfo& thread);
  /// A new one, even when the address was seen before.
  NnModuleId nn_module(const NnModule& module);
  void nn_module_name(const NnModuleName& name);
  void tensor(const ModelTensor& tensor);
  void process(const ProcessInfo& process);
  void loss(const Loss& loss);
  void mark(const Mark& mark);
  void end(const EndInfo& end);

  [[nodiscard]] std::uint32_t stack_count() const { return stack_count_; }
  [[nodiscard]] std::uint32_t thread_count() const { return thread_count_; }
  [[nodiscard]] std::uint32_t autograd_node_count() const { return static_cast<std::uint32_t>(autograd_nodes_.size()); }

  [[nodiscard]] bool empty() const { return pending_.empty(); }
  /// At most this many bytes come from append_frames(), headers included.
  [[nodiscard]] std::size_t pending_bytes() const;
  /// Appends all that is new as frames to `out`.
  void append_frames(FrameEncoder& frames, std::vector<std::byte>& out);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  /// The fields of a location as numbers, for look-up.
  struct Key {
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t third;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Body = std::vector<std::uint8_t>;

  void add_record(format::RecordKind kind, const Body& body);

  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> strings_;
  std::unordered_map<Key, std::uint32_t, KeyHash> locations_;
  std::unordered_map<std::string, std::uint32_t> modules_;           // by the record's body
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;          // by parent code and location code
  std::unordered_map<std::uint64_t, std::uint32_t> autograd_nodes_;  // by class code and thread code
  std::uint32_t location_count_ = 0;
  std::uint32_t stack_count_ = 0;
  std::uint32_t thread_count_ = 0;
  std::uint32_t nn_module_count_ = 0;
  std::vector<Body> pending_;  // one payload a frame, full ones first
  Body scratch_;
};

}  // namespace tidemark
