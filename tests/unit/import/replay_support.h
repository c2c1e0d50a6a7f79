// Shared by the replay tests: a snapshot written line by line, and a sink that checks every promise of ReplaySink.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "import/pytorch_snapshot/replay/replay.h"

namespace tidemark::pytorch::testing {

/// Writes a snapshot of device 0. Entries are one microsecond apart.
class Script {
 public:
  Snapshot snapshot;

  Script();
  Script& add(Action action, std::uint64_t address, std::uint64_t size);
  Script& alloc(std::uint64_t address, std::uint64_t size) { return add(Action::allocate, address, size); }
  Script& request(std::uint64_t address, std::uint64_t size) { return add(Action::free_requested, address, size); }
  Script& complete(std::uint64_t address, std::uint64_t size) { return add(Action::free_completed, address, size); }
  Script& free(std::uint64_t address, std::uint64_t size) { return request(address, size).complete(address, size); }
  Script& segment(std::uint64_t address, std::uint64_t size) { return add(Action::segment_alloc, address, size); }

  /// A final segment; `block` adds its blocks from the front: {size, requested}, requested 0 = inactive.
  Script& final_segment(std::uint64_t address, std::uint64_t size, bool expandable = false, std::uint16_t pool = 0);
  Script& block(std::uint64_t size, std::uint64_t requested, BlockState state = BlockState::active_allocated);

  [[nodiscard]] DeviceTrace& trace() { return snapshot.traces.front(); }
};

/// Keeps its own books from the calls alone, and fails the test if totals, ids, ranges or the order of calls differ
/// from them.
class CheckingSink : public ReplaySink {
 public:
  struct Block {
    ReplayBlock block;
    TracePosition born;
    bool pending = false;
  };

  void segment_reserved(const ReplaySegment& segment, const TracePosition& when, const MemoryTotals& totals) override;
  void segment_released(const ReplaySegment& segment, const TracePosition& when, const MemoryTotals& totals) override;
  void block_allocated(const ReplayBlock& block, const TracePosition& when, const MemoryTotals& totals) override;
  void free_requested(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override;
  void free_completed(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override;
  void out_of_memory(const ReplayOutOfMemory& event, const TracePosition& when, const MemoryTotals& totals) override;
  void annotated(std::uint32_t block, const TracePosition& when, const MemoryTotals& totals) override;
  void marked(Action action, const TracePosition& when, const MemoryTotals& totals) override;

  /// The totals after `entry` (or after the last calling entry before it); nullopt: before the first.
  [[nodiscard]] MemoryTotals after(std::optional<std::uint32_t> entry) const;
  [[nodiscard]] MemoryTotals peak() const { return peak_; }

  std::vector<Block> blocks;                    ///< by id, all there ever were
  std::map<std::uint64_t, std::uint32_t> live;  ///< start → id
  std::vector<ReplaySegment> reserved;          ///< in the order of the calls
  std::vector<ReplaySegment> released;
  std::vector<ReplayOutOfMemory> ooms;
  std::vector<Action> marks;
  std::vector<std::uint32_t> annotated_blocks;
  std::size_t implied = 0;  ///< calls that the trace does not hold

 private:
  struct Range {
    std::uint64_t end = 0;
    SegmentKind kind = SegmentKind::ordinary;
    std::uint64_t used = 0;  ///< bytes of active blocks
  };

  std::map<std::uint64_t, Range>::iterator range_of(std::uint64_t address);
  void unsplit(const Range& range, std::uint64_t start, bool add);
  void check(const TracePosition& when, const MemoryTotals& totals);

  std::map<std::uint64_t, Range> ranges_;
  MemoryTotals mine_;
  MemoryTotals peak_;
  std::map<std::int64_t, MemoryTotals> by_entry_;  ///< entry → totals after it; -1 = before the trace
};

/// Replays device 0 and checks the sink's own peaks against the summary's.
ReplaySummary replay_checked(const Snapshot& snapshot, CheckingSink& sink, std::int32_t device = 0);

/// The names of the quality's issues.
std::vector<std::string> names_of(const ReplayQuality& quality);

}  // namespace tidemark::pytorch::testing
