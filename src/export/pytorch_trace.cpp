// What happened on a device, in order: blocks allocated and freed, segments taken and given back, failed requests.
#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "export/pytorch_pickle.h"

namespace tidemark::pytorch {
namespace {

// Something that is no step: at the same time in this order, since a segment is given back after its last block.
struct Incident {
  enum class Kind : std::uint8_t { completion, segment_change, out_of_memory };

  std::uint64_t step_count = 0;
  std::uint64_t time_ns = 0;
  Kind kind = Kind::completion;
  std::size_t index = 0;  // into Store::pending_frees, segment_changes or out_of_memory
};

class TraceWriter {
 public:
  TraceWriter(const Store& store, std::size_t device, SnapshotPickle& pickle, const Progress& progress)
      : store_(store), device_(device), pickle_(pickle), progress_(progress) {}

  void write() {
    gather_incidents();
    pickle_.begin_list();
    std::uint64_t before = 0;  // blocks from before the first event: the file has them in its segments or frees only
    for (const std::uint64_t blocks : blocks_at_start(store_)) before += blocks;
    auto incident = incidents_.begin();
    for (std::uint64_t step = 0; step <= store_.steps.size() && !pickle_.failed(); ++step) {
      for (; incident != incidents_.end() && incident->step_count <= step; ++incident) write_incident(*incident);
      if (step < before || step == store_.steps.size()) continue;
      if (store_.blocks.device[store_.steps[step].block.value] == device_) write_step(store_.steps[step]);
      if (progress_ && step % kStepsBetweenProgress == 0) progress_(step, store_.steps.size());
    }
    pickle_.end_list();
  }

 private:
  static constexpr std::uint64_t kStepsBetweenProgress = std::uint64_t{1} << 16;

  void gather_incidents() {
    for (std::size_t index = 0; index < store_.pending_frees.size(); ++index) {
      const PendingFree& free = store_.pending_frees[index];
      if (store_.blocks.device[free.block.value] != device_) continue;
      held_back_.push_back(free.block.value);
      if (free.until_ns == PendingFree::kEnd) continue;
      incidents_.push_back({free.until_step_count, free.until_ns, Incident::Kind::completion, index});
    }
    std::sort(held_back_.begin(), held_back_.end());
    for (std::size_t index = store_.segment_changes_before; index < store_.segment_changes.size(); ++index) {
      const SegmentChange& change = store_.segment_changes[index];
      if (change.device != device_) continue;
      incidents_.push_back({change.step_count, change.time_ns, Incident::Kind::segment_change, index});
    }
    for (std::size_t index = 0; index < store_.out_of_memory.size(); ++index) {
      const OutOfMemory& failure = store_.out_of_memory[index];
      if (failure.device != device_) continue;
      incidents_.push_back({failure.step_count, failure.time_ns, Incident::Kind::out_of_memory, index});
    }
    std::stable_sort(incidents_.begin(), incidents_.end(), [](const Incident& left, const Incident& right) {
      return std::tie(left.step_count, left.time_ns, left.kind) < std::tie(right.step_count, right.time_ns, right.kind);
    });
  }

  void write_step(const Step& step) {
    const std::uint32_t block = step.block.value;
    if (step.birth) {
      write_block(Word::alloc, step.time_ns, block);
      return;
    }
    write_block(Word::free_requested, step.time_ns, block);
    const bool completed = !std::binary_search(held_back_.begin(), held_back_.end(), block);
    if (completed) write_block(Word::free_completed, step.time_ns, block);
  }

  void write_block(Word action, std::uint64_t time_ns, std::uint32_t block) {
    const Blocks& blocks = store_.blocks;
    begin_entry(action, Word::addr, time_ns);
    pickle_.integer(blocks.address[block]);
    pickle_.item(Word::size, blocks.requested.empty() ? blocks.size[block] : blocks.requested[block]);
    pickle_.stream_item(blocks.stream.empty() ? 0 : blocks.stream[block]);
    if (!blocks.pool.empty()) pickle_.pool_item(Word::pool_id, blocks.pool[block]);
    end_entry(blocks.stack[block]);
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
      pickle_.real(std::numeric_limits<double>::quiet_NaN());  // not known, and PyTorch's viewer wants a number
    }
    pickle_.item(Word::size, failure.requested);
    pickle_.item(Word::stream, 0);
    end_entry(failure.stack);
  }

  // The value of `key` comes next.
  void begin_entry(Word action, Word key, std::uint64_t time_ns) {
    pickle_.next_item();
    pickle_.begin_dict();
    pickle_.item(Word::action, action);
    pickle_.item(Word::time_us, (store_.definitions.process.start_wall_ns + time_ns) / 1000);
    pickle_.word(key);
  }
  void end_entry(StackId stack) {
    pickle_.frames_item(stack);
    pickle_.end_dict();
  }

  const Store& store_;
  const std::size_t device_;
  SnapshotPickle& pickle_;
  const Progress& progress_;
  std::vector<Incident> incidents_;
  std::vector<std::uint32_t> held_back_;  // blocks whose free is not completed at once; sorted
};

}  // namespace

void write_device_trace(const Store& store, std::size_t device, SnapshotPickle& pickle, const Progress& progress) {
  TraceWriter(store, device, pickle, progress).write();
}

}  // namespace tidemark::pytorch
