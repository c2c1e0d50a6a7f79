// Turns the pickle's lists and dicts into the columns of a snapshot while they are being filled: a trace entry's dict
// is an entry as soon as its items are set, a list of frames is a stack, and nothing else of them is kept.
//
// What a dict is shows by its keys ("action": an entry; "filename": a frame; "state": a block), in any order and in
// several batches. What holds them together (segments, annotations, settings) stays a Container until the end, when
// finish() walks from the outermost dict down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/large_tables.h"
#include "import/pytorch_snapshot/model/builder_tables.h"
#include "import/pytorch_snapshot/model/field_counts.h"
#include "import/pytorch_snapshot/model/known.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/pickle/input.h"
#include "import/pytorch_snapshot/pickle/unpickler.h"
#include "import/pytorch_snapshot/pickle/value.h"
#include "import/pytorch_snapshot/pickle/value_tables.h"
#include "trace/definitions.h"

namespace tidemark::pytorch {

/// A frame's dict; texts by their ids, 0 where it has none.
struct Frame {
  std::uint32_t file = 0;
  std::uint32_t function = 0;
  std::uint32_t line = 0;
  std::uint32_t fx_node = 0;
  std::uint32_t fx_trace = 0;
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

  /// Those of them that torch.fx generated, and that say so.
  std::vector<GeneratedFrame> generated();

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

/// Not thread-safe.
class SnapshotBuilder final : public ContainerBuilder {
 public:
  /// `input`: what is read, to tell how far reading is.
  explicit SnapshotBuilder(const PickleInput& input);
  SnapshotBuilder(const SnapshotBuilder&) = delete;
  SnapshotBuilder& operator=(const SnapshotBuilder&) = delete;

  PickleTables tables{kKnownTexts};

  PickleValue set_items(PickleValue dict, std::span<const PickleValue> items) override;
  PickleValue append(PickleValue list, std::span<const PickleValue> items) override;
  [[nodiscard]] const std::string& failure() const override { return failure_; }

  /// The snapshot whose pickle ends with `root`. Call once, then no more. The error is a sentence without the file's
  /// name.
  Result<Snapshot> finish(PickleValue root);

 private:
  /// Of a block's address or requested size until finish() knows better.
  static constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

  // fill_: takes the items of a dict while the pickle is read. use_: takes one value. finish_: at the end. What is not
  // as expected is counted in unknown_ or invalid_, or (then failure() says why) not to be used at all.

  // snapshot_builder.cpp
  PickleValue fail(std::string why) {
    failure_ = std::move(why);
    return {};
  }
  PickleValue fill_new(Tag kind, std::span<const PickleValue> items);
  PickleValue fill_container(PickleValue dict, std::span<const PickleValue> items);
  PickleValue fill_frame(Frame frame, std::span<const PickleValue> items);
  bool finish_snapshot(PickleValue dict);
  void finish_item(PickleValue key, PickleValue value);
  [[nodiscard]] std::string place_of_frame(LocationId location) const;
  bool use_frames(StackId& stack, PickleValue value);
  bool use_long_stack(StackId& stack, Container& list);
  bool use_stream(std::uint16_t& index, PickleValue value, bool& known);
  bool use_pool(std::uint16_t& index, PickleValue value, bool& known);
  bool get_device(PickleValue value, std::int32_t& device) const;
  Container* use_once(PickleValue value, bool is_dict);

  // device_traces.cpp
  bool fill_entry(std::uint32_t id, std::span<const PickleValue> items);
  bool use_action(TraceEntry& entry, PickleValue value);
  void finish_traces(PickleValue list);
  void finish_trace(DeviceTrace& trace, const Container& list, bool is_column);
  void finish_texts(const std::vector<EntryText>& of_all, const Container& list, std::vector<EntryText>& of_trace);

  // segments.cpp
  bool fill_block(std::uint32_t id, std::span<const PickleValue> items);
  bool use_history(SnapshotBlock& block, PickleValue value);
  void finish_segments(PickleValue list);
  bool finish_segment(Container& dict, const std::string& place);
  bool finish_blocks(SnapshotSegment& segment, PickleValue list, const std::string& place);

  // settings_and_annotations.cpp
  void finish_settings(PickleValue dict);
  bool finish_divisions(PickleValue dict, AllocatorSettings& settings);
  void finish_annotations(PickleValue list);
  void finish_annotation(const Container& dict, const std::string& place);
  void finish_recorded_devices(PickleValue names);

  const PickleInput& input_;
  Snapshot snapshot_;
  StackTable stacks_{tables.texts, snapshot_.definitions};
  ContainerTable containers_;
  EntryColumns entries_;
  std::vector<SnapshotBlock> blocks_;
  std::vector<EntryText> user_metadata_;    // of any entry by its id; texts by their ids; in order
  std::vector<EntryText> compile_context_;  // likewise
  UnknownCounts unknown_;
  InvalidFields invalid_;
  std::unordered_map<std::uint64_t, std::uint16_t> streams_;        // handle → index into Snapshot::streams
  std::unordered_map<std::uint32_t, std::uint16_t> pools_by_pair_;  // id → index into Snapshot::pools
  std::uint16_t last_stream_ = 0;
  std::string failure_;
};

}  // namespace tidemark::pytorch
