// Encodes definitions as records of definitions frames, and decodes them: interns referenced values, and packs new
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/format.h"
#include "trace/frames.h"

namespace tidemark {

/// Not thread-safe. Keeps every string and key it was given, for as long as it lives.
class DefinitionEncoder {
 public:
  // Equal arguments give equal ids. Undefined ids inside an argument count as none.
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

  [[nodiscard]] DefinedIds defined() const;
  template <typename Record>
  void add(format::RecordKind kind, const Record& record);
  /// The body is in scratch_.
  void add_body(format::RecordKind kind);

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

/// Called after each record with its kind (perhaps an unknown one); the new definition is the last entry of its table.
using RecordObserver = std::function<void(format::RecordKind)>;

/// Not thread-safe.
class DefinitionDecoder {
 public:
  /// Maximum memory of the tables: zstd compresses repetition a thousandfold, so untrusted files could fill any memory.
  /// The definitions of recordings take 3 to 9 times their bytes in the file.
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMemoryPerStoredByte = 100;

  /// Adds the payload's records to `definitions`, which must be the same object in every call. `payload` must have
  /// Frame::kPadding readable bytes after it, and takes `stored_bytes` in the file. The error describes the problem
  /// without file and offset; the records before the invalid one have been added.
  Result<void> decode(std::span<const std::uint8_t> payload, std::uint64_t stored_bytes, Definitions& definitions,
                      const RecordObserver& observe = {});

  /// Records of an unknown kind.
  [[nodiscard]] std::uint64_t unknown_records() const { return unknown_records_; }

 private:
  std::uint64_t unknown_records_ = 0;
  std::uint64_t memory_used_ = 0;
  std::uint64_t memory_allowed_ = kMemoryBytes;
};

}  // namespace tidemark
