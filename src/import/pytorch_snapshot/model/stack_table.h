// Frames and lists of them, each once: as Definitions' locations and tree of stacks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"
#include "trace/definitions.h"

namespace tidemark::pytorch {

/// A frame's dict; texts by their ids.
struct Frame {
  std::uint32_t file = 0;
  std::uint32_t function = 0;
  std::uint32_t line = 0;
  bool operator==(const Frame&) const = default;
};

/// Not thread-safe.
class StackTable {
 public:
  StackTable(const TextTable& texts, Definitions& definitions) : texts_(texts), definitions_(definitions) {}

  LocationId location(const Frame& frame);
  [[nodiscard]] Frame frame(LocationId id) const { return frames_[id.value]; }

  /// `frames`: values of frames, innermost first as in the file; not empty.
  StackId stack(std::span<const PickleValue> frames);
  /// A stack's frames, innermost first, as values.
  [[nodiscard]] std::vector<PickleValue> frames_of(StackId stack) const;

  /// The text as an entry of Definitions::strings.
  StringId string(std::uint32_t text);

 private:
  [[nodiscard]] bool same(StackId stack, std::span<const PickleValue> frames) const;
  StackId build(std::span<const PickleValue> frames);

  const TextTable& texts_;
  Definitions& definitions_;
  std::vector<Frame> frames_;      // by LocationId
  std::vector<StringId> strings_;  // by text
  IdIndex locations_;
  IdIndex nodes_;   // of the tree, by parent and location
  IdIndex stacks_;  // by all frames
};

}  // namespace tidemark::pytorch
