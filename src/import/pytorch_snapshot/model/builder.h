// Turns the pickle's lists and dicts into the columns of a snapshot while they are being filled: a trace entry's dict
// is an entry as soon as its items are set, a list of frames is a stack, and nothing else of them is kept.
//
// What a dict is shows by its keys ("action": an entry; "filename": a frame; "state": a block), in any order and in
// several batches. What holds them together (segments, annotations, settings) stays a Container until the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "import/pytorch_snapshot/model/container_table.h"
#include "import/pytorch_snapshot/model/entry_columns.h"
#include "import/pytorch_snapshot/model/known.h"
#include "import/pytorch_snapshot/model/snapshot.h"
#include "import/pytorch_snapshot/model/stack_table.h"
#include "import/pytorch_snapshot/model/text_table.h"
#include "import/pytorch_snapshot/model/unknown_counts.h"
#include "import/pytorch_snapshot/model/value_tables.h"

namespace tidemark::pytorch {

/// Not thread-safe.
class SnapshotBuilder {
 public:
  SnapshotBuilder();
  SnapshotBuilder(const SnapshotBuilder&) = delete;
  SnapshotBuilder& operator=(const SnapshotBuilder&) = delete;

  TextTable texts;
  NumberTable numbers;
  double share_read = 0;  ///< of the file, so far

  /// What `dict` is with these items (keys and values by turns). Tag::unset where that cannot be: see failure().
  Word set_items(Word dict, std::span<const Word> items);
  /// What `list` is with these items at its end, likewise.
  Word append(Word list, std::span<const Word> items);
  Word make_tuple(std::span<const Word> items);

  /// The snapshot whose pickle ends with `root`. Call once, then no more. The error is a sentence without the file's
  /// name.
  Result<Snapshot> finish(Word root);

  /// A sentence without the file's name.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  /// Of a block's address or requested size until finish() knows better.
  static constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

  Word fail(std::string why) {
    failure_ = std::move(why);
    return {};
  }

  // snapshot_builder.cpp: what a dict is
  Word fill_new(Tag kind, std::span<const Word> items);
  Word fill_container(Word dict, std::span<const Word> items);

  // snapshot_items.cpp: what is in it
  Word fill_frame(Frame frame, std::span<const Word> items);
  bool fill_entry(std::uint32_t id, std::span<const Word> items);
  bool fill_block(std::uint32_t id, std::span<const Word> items);
  void use_action(TraceEntry& entry, Word value);
  void use_history(SnapshotBlock& block, Word value);
  bool use_stream(std::uint16_t& index, Word value, bool& known);
  bool use_pool(std::uint16_t& index, Word value, bool& known);
  bool use_frames(StackId& stack, Word value);
  bool use_long_stack(StackId& stack, Container& list);

  // snapshot_finish.cpp: at the end. False: not what was expected, or (then failure() says why) not to be used at all.
  bool finish_snapshot(Word dict);
  bool finish_item(Word key, Word value);
  bool finish_recorded_devices(Word names);
  bool finish_traces(Word list);
  bool finish_trace(DeviceTrace& trace, const Container& list, bool is_column);
  void finish_texts(const std::vector<EntryText>& of_all, const Container& list, std::vector<EntryText>& of_trace);

  // snapshot_state.cpp: likewise
  bool finish_segments(Word list);
  bool finish_segment(Container& dict);
  bool finish_blocks(SnapshotSegment& segment, Word list);
  bool finish_annotations(Word list);
  void finish_annotation(const Container& dict);
  bool finish_settings(Word dict);
  void finish_divisions(Word dict);
  bool get_device(Word word, std::int32_t& device) const;
  Container* use_once(Word word, bool is_dict);

  Snapshot snapshot_;
  StackTable stacks_{texts, snapshot_.definitions};
  PoolTable pools_;
  ContainerTable containers_;
  EntryColumns entries_;
  std::vector<SnapshotBlock> blocks_;
  std::vector<EntryText> user_metadata_;    // of any entry by its id; texts by their ids; in order
  std::vector<EntryText> compile_context_;  // likewise
  UnknownCounts unknown_;
  std::unordered_map<std::uint64_t, std::uint16_t> streams_;         // handle → index into Snapshot::streams
  std::unordered_map<std::uint32_t, std::uint16_t> pools_by_tuple_;  // id → index into Snapshot::pools
  std::uint16_t last_stream_ = 0;
  std::string failure_;
};

}  // namespace tidemark::pytorch
