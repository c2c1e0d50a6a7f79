// Events of a device, in order: blocks allocated and freed, segments reserved and released, failed requests.
#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "export/pytorch_pickle.h"

namespace tidemark::pytorch {
namespace {

// Something that is no live change: at the same time in this order, since a segment is given back after its last block.
struct Incident {
  enum class Kind : std::uint8_t { completion, segment_change, out_of_memory, mark };

  std::uint64_t change_count = 0;
  std::uint64_t time_ns = 0;
  Kind kind = Kind::completion;
  std::size_t index = 0;  // into Store::pending_frees, segment_changes, out_of_memory or marks
};

class TraceWriter {
 public:
  TraceWriter(const Store& store, std::size_t device, const BlockFilter& filter, SnapshotPickle& pickle,
              const Progress& progress)
      : store_(store),
        device_(device),
        filter_(filter),
        pickle_(pickle),
        progress_(progress),
        metadata_(store.blocks.metadata.begin()) {}

  void write(bool with_marks) {
    gather_incidents();
    if (with_marks) gather_marks();
    std::stable_sort(incidents_.begin(), incidents_.end(), [](const Incident& left, const Incident& right) {
      return std::tie(left.change_count, left.time_ns, left.kind) <
             std::tie(right.change_count, right.time_ns, right.kind);
    });
    pickle_.begin_list();
    std::uint64_t before = 0;  // blocks from before the first event: the file has them in its segments or frees only
    for (const std::uint64_t blocks : blocks_at_start(store_)) before += blocks;
    auto incident = incidents_.begin();
    for (std::uint64_t index = 0; index <= store_.live_changes.size() && !pickle_.failed(); ++index) {
      for (; incident != incidents_.end() && incident->change_count <= index; ++incident) write_incident(*incident);
      if (index < before || index == store_.live_changes.size()) continue;
      if (is_wanted(store_.live_changes[index].block)) write_live_change(store_.live_changes[index]);
      if (progress_ && index % kChangesBetweenProgress == 0) progress_(index, store_.live_changes.size());
    }
    pickle_.end_list();
  }

 private:
  static constexpr std::uint64_t kChangesBetweenProgress = std::uint64_t{1} << 16;

  [[nodiscard]] bool is_wanted(BlockId block) const {
    return store_.blocks.device[block.value] == device_ && filter_(block.value);
  }

  void gather_incidents() {
    for (std::size_t index = 0; index < store_.pending_frees.size(); ++index) {
      const PendingFree& free = store_.pending_frees[index];
      if (!is_wanted(free.block)) continue;
      held_back_.push_back(free.block.value);
      if (free.until_ns == PendingFree::kEnd) continue;
      incidents_.push_back({free.until_change_count, free.until_ns, Incident::Kind::completion, index});
    }
    std::sort(held_back_.begin(), held_back_.end());
    for (std::size_t index = store_.segment_changes_before; index < store_.segment_changes.size(); ++index) {
      const SegmentChange& change = store_.segment_changes[index];
      if (change.device != device_) continue;
      incidents_.push_back({change.change_count, change.time_ns, Incident::Kind::segment_change, index});
    }
    for (std::size_t index = 0; index < store_.out_of_memory.size(); ++index) {
      const OutOfMemory& failure = store_.out_of_memory[index];
      if (failure.device != device_) continue;
      incidents_.push_back({failure.change_count, failure.time_ns, Incident::Kind::out_of_memory, index});
    }
  }

  void gather_marks() {
    const auto& marks = store_.definitions.marks;
    for (std::size_t index = 0; index < marks.size(); ++index) {
      if (marks[index].kind != Mark::Kind::point) continue;
      const std::uint64_t time_ns = marks[index].time_ns;
      incidents_.push_back({store_.changes_until(time_ns), time_ns, Incident::Kind::mark, index});
    }
  }

  void write_live_change(const LiveChange& live_change) {
    const std::uint32_t block = live_change.block.value;
    if (live_change.birth) {
      write_birth(live_change.time_ns, block);
      return;
    }
    write_block(Word::free_requested, live_change.time_ns, block);
    const bool completed = !std::binary_search(held_back_.begin(), held_back_.end(), block);
    if (completed) write_block(Word::free_completed, live_change.time_ns, block);
  }

  // With the texts attached to the block: the times of the later ones are unknown.
  void write_birth(std::uint64_t time_ns, std::uint32_t block) {
    const auto end = store_.blocks.metadata.end();
    while (metadata_ != end && metadata_->block.value < block) ++metadata_;
    Word action = Word::alloc;
    do {
      const bool attached = metadata_ != end && metadata_->block.value == block;
      write_block(action, time_ns, block, attached ? (metadata_++)->text : StringId{});
      action = Word::annotate;
    } while (metadata_ != end && metadata_->block.value == block);
  }

  void write_block(Word action, std::uint64_t time_ns, std::uint32_t block, StringId metadata = {}) {
    const Blocks& blocks = store_.blocks;
    begin_entry(action, Word::addr, time_ns);
    pickle_.integer(blocks.address[block]);
    pickle_.item(Word::size, blocks.requested.empty() ? blocks.size[block] : blocks.requested[block]);
    pickle_.stream_item(blocks.stream.empty() ? 0 : blocks.stream[block]);
    if (!blocks.pool.empty()) pickle_.pool_item(Word::pool_id, blocks.pool[block]);
    if (metadata.valid()) {
      pickle_.word(Word::user_metadata);
      pickle_.string(metadata);
    }
    pickle_.block_frames_item(block);
    pickle_.end_dict();
  }

  void write_incident(const Incident& incident) {
    switch (incident.kind) {
      case Incident::Kind::completion:
        write_block(Word::free_completed, incident.time_ns, store_.pending_frees[incident.index].block.value);
        break;
      case Incident::Kind::segment_change:
        write_segment(store_.segment_changes[incident.index]);
        break;
      case Incident::Kind::out_of_memory:
        write_out_of_memory(store_.out_of_memory[incident.index]);
        break;
      case Incident::Kind::mark:
        write_mark(store_.definitions.marks[incident.index]);
        break;
    }
  }

  void write_segment(const SegmentChange& change) {
    const Word taken = change.expandable ? Word::segment_map : Word::segment_alloc;
    const Word returned = change.expandable ? Word::segment_unmap : Word::segment_free;
    begin_entry(change.reserved ? taken : returned, Word::addr, change.time_ns);
    pickle_.integer(change.address);
    pickle_.item(Word::size, change.size);
    pickle_.stream_item(change.stream);
    pickle_.pool_item(Word::pool_id, change.pool);
    end_entry(change.stack);
  }

  void write_out_of_memory(const OutOfMemory& failure) {
    begin_entry(Word::oom, Word::device_free, failure.time_ns);
    if (failure.device_free) {
      pickle_.integer(*failure.device_free);
    } else {
      pickle_.real(std::numeric_limits<double>::quiet_NaN());  // unknown, but PyTorch's viewer requires a number
    }
    pickle_.item(Word::size, failure.requested);
    if (failure.stream) {
      pickle_.stream_item(*failure.stream);
    } else {
      pickle_.item(Word::stream, 0);
    }
    if (failure.pool) pickle_.pool_item(Word::pool_id, *failure.pool);
    end_entry(failure.stack);
  }

  void write_mark(const Mark& mark) {
    begin_entry(Word::user_defined, Word::addr, mark.time_ns);
    pickle_.integer(0);
    pickle_.item(Word::size, 0);
    pickle_.item(Word::stream, 0);
    pickle_.word(Word::user_metadata);
    pickle_.string(mark.name);
    end_entry({});
  }

  // The value of `key` comes next.
  void begin_entry(Word action, Word key, std::uint64_t time_ns) {
    pickle_.next_item();
    pickle_.begin_dict();
    pickle_.item(Word::action, action);
    pickle_.time_item(time_ns);
    pickle_.word(key);
  }
  void end_entry(StackId stack) {
    pickle_.frames_item(stack);
    pickle_.end_dict();
  }

  const Store& store_;
  const std::size_t device_;
  const BlockFilter& filter_;
  SnapshotPickle& pickle_;
  const Progress& progress_;
  std::vector<Incident> incidents_;
  std::vector<BlockMetadata>::const_iterator metadata_;
  std::vector<std::uint32_t> held_back_;  // blocks with a delayed free; sorted
};

}  // namespace

void write_device_trace(const Store& store, std::size_t device, bool with_marks, const BlockFilter& filter,
                        SnapshotPickle& pickle, const Progress& progress) {
  TraceWriter(store, device, filter, pickle, progress).write(with_marks);
}

}  // namespace tidemark::pytorch
