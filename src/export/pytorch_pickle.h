// State shared while the parts of a PyTorch memory snapshot are written: its words, and stacks that are written once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/fragmentation/segment_map.h"
#include "export/pickle_writer.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark::pytorch {

/// Keys and values, as torch.cuda.memory._snapshot() has them; in the order of the texts in pytorch_pickle.cpp.
enum class Word : std::uint8_t {
  // trace entries
  action,
  addr,
  size,
  stream,
  time_us,
  frames,
  device_free,
  pool_id,
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  user_defined,
  annotate,
  user_metadata,
  // frames
  filename,
  line,
  name,
  // segments
  device,
  address,
  total_size,
  allocated_size,
  active_size,
  requested_size,
  segment_type,
  small,
  large,
  segment_pool_id,
  is_expandable,
  blocks,
  // blocks
  state,
  active_allocated,
  active_pending_free,
  inactive,
  // settings
  cuda_alloc_conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
  // annotations
  stage,
  start,
  end,
  // the snapshot
  device_traces,
  segments,
  allocator_settings,
  external_annotations,
  tidemark_devices,
  count,
};

/// Not thread-safe.
class SnapshotPickle : public PickleWriter {
 public:
  /// `attribution` may be null.
  SnapshotPickle(const Store& store, Symbols& symbols, const Attribution* attribution, const ByteOutput& output);

  using PickleWriter::word;
  void word(Word word) { PickleWriter::word(static_cast<std::size_t>(word)); }
  // A key and its value.
  void item(Word key, Word value) {
    word(key);
    word(value);
  }
  void item(Word key, std::uint64_t value) {
    word(key);
    integer(value);
  }

  /// A key and the moment as PyTorch has it: microseconds of the wall clock.
  void time_item(std::uint64_t time_ns) { item(Word::time_us, (start_wall_ns_ + time_ns) / 1000); }
  /// A string of the recording's.
  void string(StringId id);
  /// The stack, innermost frame first; nothing for an invalid one.
  void frames_item(StackId stack) { frames_item(stack, {}); }
  /// The same for a block, with its category as the outermost frame if known.
  void block_frames_item(std::uint32_t block);
  /// Whether it writes any.
  [[nodiscard]] bool has_frames(std::uint32_t block) const {
    return attribution_ != nullptr || block_columns_.stack[block].valid();
  }
  /// One artificial frame with the name `text`.
  void remark_item(std::string_view text);
  /// `index` into Store::streams; 0, the default stream, if the source has no streams.
  void stream_item(std::size_t index) { item(Word::stream, index < streams_.size() ? streams_[index] : 0); }
  /// `index` into Store::pools; nothing if the source has no pools.
  void pool_item(Word key, std::size_t index);

 private:
  using CategorizedStack = std::pair<StackId, std::optional<Category>>;

  void frames_item(StackId stack, std::optional<Category> category);
  void frame(const FrameName& frame);
  void remark(std::string_view text);

  Symbols& symbols_;
  const Blocks& block_columns_;
  const Attribution* attribution_;
  const std::vector<std::string>& strings_;
  const std::uint64_t start_wall_ns_;
  const std::vector<std::uint64_t>& streams_;
  const std::vector<PoolId>& pools_;
  std::vector<std::optional<PickleMemo>> written_pools_;
  std::map<CategorizedStack, PickleMemo> written_stacks_;
  std::unordered_map<LocationId, PickleMemo> written_frames_;
};

/// The trace of a device: a list of events, in order; marks have no device, so one trace has them all. Includes only
/// blocks of the filter, but all segments and failed requests.
void write_device_trace(const Store& store, std::size_t device, bool with_marks, const BlockFilter& filter,
                        SnapshotPickle& pickle, const Progress& progress);

/// Memory of a device at the end, as items of the list of segments; `number` is the device's in the snapshot. Blocks
/// outside the filter are inactive.
void write_device_segments(const Store& store, std::size_t device, std::size_t number, const BlockFilter& filter,
                           SnapshotPickle& pickle);

}  // namespace tidemark::pytorch
