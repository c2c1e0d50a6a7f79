// One pass over a device's trace: tracks the segment map, the totals and the counts of contradictions.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "allocator/rules.h"
#include "import/pytorch_snapshot/replay/replay.h"
#include "import/pytorch_snapshot/replay/segment_map.h"
#include "import/pytorch_snapshot/replay/start.h"

namespace tidemark::pytorch {

/// Rule for splitting blocks of ordinary segments if there are expandable ones too: the snapshot does not contain it.
/// The guess that needs the fewest corrections is used.
enum class SplitGuess : std::uint8_t {
  by_setting,  ///< as the setting expandable_segments is at the end (to torch 2.7)
  by_kind,     ///< never by the expandable rule (pools with a separate allocator, from torch 2.8)
  by_latest,   ///< the setting changed as the kind of the segments reserved did
};

/// The true size of the block that an entry allocates, if it differs from the rules.
struct SizeCorrection {
  std::uint32_t entry = 0;
  std::uint64_t size = 0;
};

/// Result of a survey.
struct LearnedSizes {
  std::unordered_map<std::uint32_t, std::uint64_t> entries;  ///< by allocating entry
  std::unordered_map<std::uint32_t, std::uint64_t> initial;  ///< by index into ReplayStart::blocks
  std::vector<bool> settled;                                 ///< initial blocks with a final size, independent of their
                                                             ///< slack

  [[nodiscard]] std::size_t size() const { return entries.size() + initial.size(); }
};

/// Without a sink it is a survey: if later blocks or the final state show that a block has another size, the size is
/// corrected at once and noted. With a sink, sizes stay as reported to it. Used once.
class ReplayPass {
 public:
  ReplayPass(const DeviceTrace& trace, const ReplayStart& start, const AllocatorRules& rules, SplitGuess guess,
             std::span<const SizeCorrection> corrections, ReplaySink* sink);

  void run();
  /// Compares the map after run() with the final segments.
  void check_final(const Snapshot& snapshot);

  [[nodiscard]] const LearnedSizes& learned() const { return learned_; }
  [[nodiscard]] const ReplaySummary& summary() const { return summary_; }

 private:
  void begin();
  BlockIndex begin_block(std::uint32_t index, BlockIndex rest);
  void check_clock(const TraceEntry& entry);
  void allocate(const TraceEntry& entry);
  void request_free(const TraceEntry& entry);
  void complete_free(const TraceEntry& entry);
  void reserve(const TraceEntry& entry, SegmentKind kind);
  void release(const TraceEntry& entry);
  void out_of_memory(const TraceEntry& entry);
  void mark(const TraceEntry& entry);
  void annotate(const TraceEntry& entry);

  [[nodiscard]] bool expandable_rules(const MapBlock& block) const;
  std::uint64_t block_size(const MapBlock& free_block, std::uint64_t rounded);
  void enter(BlockIndex block, std::uint64_t requested);
  void request(BlockIndex block, bool implied);
  void complete(BlockIndex block, bool implied);
  void add_segment(const ReplaySegment& segment, const TracePosition& when);
  void drop_free(BlockIndex block, bool implied);
  std::uint16_t reserved_pool();
  [[nodiscard]] TracePosition position(bool implied = false) const;
  void raise_peaks();

  // Implied events if the trace does not fit (repair.cpp).
  BlockIndex make_room(std::uint64_t address, std::uint64_t requested, std::uint64_t rounded);
  BlockIndex reserve_implied(std::uint64_t address, std::uint64_t size);
  void retire(BlockIndex block);
  void release_range(std::uint64_t begin, std::uint64_t end, bool implied);
  void learn(BlockIndex block, std::uint64_t size);
  void check_block(const SnapshotBlock& expected, std::size_t& matched);
  void check_segments(const Snapshot& snapshot);
  [[nodiscard]] bool may_have_grown(const MapBlock& block, std::uint64_t gap) const;

  const DeviceTrace& trace_;
  const ReplayStart& start_;
  const AllocatorRules& rules_;
  const SplitGuess guess_;
  const std::span<const SizeCorrection> corrections_;
  ReplaySink* const sink_;

  SegmentMap map_;
  MemoryTotals totals_;
  ReplaySummary summary_;
  LearnedSizes learned_;
  std::uint32_t entry_ = 0;  // index into the trace
  bool in_trace_ = false;    // false: events from before the first entry
  std::uint32_t next_id_ = 0;
  std::size_t next_correction_ = 0;
  std::size_t next_pool_ = 0;
  std::size_t unsettled_ = 0;
  std::size_t blocks_in_use_ = 0;
  BlockIndex last_requested_ = SegmentMap::kNone;
  SegmentKind latest_kind_ = SegmentKind::ordinary;
  bool unknown_request_ = false;       ///< the last request to free was of an unknown block …
  std::uint64_t unknown_address_ = 0;  ///< … without a block here; its completion is not counted again
};

}  // namespace tidemark::pytorch
