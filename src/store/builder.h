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
  /// `details` apply to allocations; either all of them have some or none.
  void add(const Event& event, const BlockDetails& details);
  /// Expected number of events, approximately: avoids growing columns step by step. Unused memory costs nothing.
  void reserve(std::size_t events);
  /// A request that failed. How many segment changes there were is set here.
  void add_out_of_memory(const Event& event, OutOfMemoryDetails details);
  /// As Tally::begin, also for segments.
  void begin();
  /// Time, device, and how many live changes there were, are set here.
  void add_segment_change(Device device, std::uint64_t time_ns, SegmentChange change);
  /// The block that had this slot was freed, and is in use by another stream until complete() or the end. Call after
  /// the free.
  void defer_free(SlotId slot);
  /// Adds to Blocks::metadata. Does nothing for an invalid text, or if the slot never had a block.
  void add_metadata(SlotId slot, StringId text);
  /// Completes a delayed free.
  void complete(std::uint64_t time_ns, SlotId slot);
  /// As Tally::add_totals.
  void add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals);
  /// As Samples::add.
  void add_sample(const SampleRecord& record);
  /// Steps no longer fit their 32-bit indexes: later events are missing, and finish() must not be called.
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }
  /// The store so far, without copying the blocks: valid until something is added. `definitions` are the recording's up
  /// to now. `growing`: as in Source, `window_began_ns`: as in Overview. full() must not be true.
  [[nodiscard]] const Store& so_far(std::string path, Definitions definitions, bool growing,
                                    std::optional<std::uint64_t> window_began_ns);
  /// Ends the building. `definitions` are the complete ones of the recording.
  Store finish(std::string path, Definitions definitions) &&;

 private:
  void add_attribution(const Event& event);
  void note_change(const Tally::Effect& effect);
  void sort_metadata();
  void name_simulated_gpu();

  Tally tally_;
  Store store_;
  std::vector<std::uint32_t> block_of_slot_;                        // Blocks::kAlive: none yet
  std::unordered_map<std::uint32_t, std::size_t> pending_of_slot_;  // index into Store::pending_frees
  bool full_ = false;
};

}  // namespace tidemark
