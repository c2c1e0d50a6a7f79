// Builds a Store from events, and from a recording's file.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "store/tally.h"
#include "trace/event.h"

namespace tidemark {

/// Not thread-safe. Takes events in order, as TraceReader gives them.
class StoreBuilder {
 public:
  void add(const Event& event);
  /// `details` count for allocations; either all of them have some or none.
  void add(const Event& event, const BlockDetails& details);
  /// So many events are to come, about: columns need not grow step by step. Memory that is not used costs nothing.
  void reserve(std::size_t events);
  /// A request that failed. How many segment changes there were is set here.
  void add_out_of_memory(const Event& event, OutOfMemoryDetails details);
  /// As Tally::begin, and for segments likewise.
  void begin();
  /// Time, device, and how many live changes there were, are set here.
  void add_segment_change(Device device, std::uint64_t time_ns, SegmentChange change);
  /// The block that had this slot was given back, and is in use by another stream until complete() or the end. Call
  /// after the free.
  void defer_free(SlotId slot);
  /// Adds to Blocks::metadata. Nothing for an invalid text, or where the slot never had a block.
  void add_metadata(SlotId slot, StringId text);
  /// What was held back is free.
  void complete(std::uint64_t time_ns, SlotId slot);
  /// As Tally::add_totals.
  void add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals);
  /// As Samples::add.
  void add_sample(const SampleRecord& record);
  /// Steps no longer fit their 32-bit indexes: what was added since is missing, and finish() must not be called.
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }
  /// What was built so far, without copying the blocks: valid until something is added. `definitions` are the
  /// recording's up to now. `growing`: as Source has it, `window_began_ns` as Overview. full() must not be true.
  [[nodiscard]] const Store& so_far(std::string path, Definitions definitions, bool growing,
                                    std::optional<std::uint64_t> window_began_ns);
  /// Ends the building. `definitions` are the complete ones of the recording.
  Store finish(std::string path, Definitions definitions) &&;

 private:
  void add_attribution(const Event& event);
  void note_change(const Tally::Effect& effect);
  void sort_metadata();

  Tally tally_;
  Store store_;
  std::vector<std::uint32_t> block_of_slot_;                        // Blocks::kAlive: none yet
  std::unordered_map<std::uint32_t, std::size_t> pending_of_slot_;  // index into Store::pending_frees
  bool full_ = false;
};

}  // namespace tidemark
