// The segments and blocks that a device has at the end.
#include "allocator/rules.h"
#include "export/pytorch_pickle.h"

namespace tidemark::pytorch {
namespace {

class SegmentWriter {
 public:
  SegmentWriter(const Store& store, std::size_t device, std::size_t number, const BlockFilter& filter,
                SnapshotPickle& pickle)
      : store_(store), device_(device), number_(number), filter_(filter), pickle_(pickle) {}

  void write() {
    Moment end;
    end.kind = Moment::Kind::end;
    const auto position = position_at(store_, device_, end);
    if (!position) return;
    const bool known = store_.source.kind == SourceKind::pytorch_snapshot;
    auto segments = known ? segment_map(store_, device_, *position) : used_pages(store_, device_, *position);
    for (MapSegment& segment : segments) {
      for (MapBlock& block : segment.blocks) {
        const bool is_free = block.state == MapBlock::State::free;
        if (!is_free && !filter_(block.block.value)) block.state = MapBlock::State::free;
      }
      pickle_.next_item();
      write_segment(segment, known);
    }
  }

 private:
  [[nodiscard]] std::uint64_t requested(const MapBlock& block) const {
    if (block.state == MapBlock::State::free) return 0;
    const Blocks& blocks = store_.blocks;
    return blocks.requested.empty() ? block.size : blocks.requested[block.block.value];
  }

  void write_segment(const MapSegment& segment, bool known) {
    const std::uint64_t allocated = segment.bytes(MapBlock::State::allocated);
    std::uint64_t asked = 0;
    for (const MapBlock& block : segment.blocks) asked += requested(block);
    pickle_.begin_dict();
    pickle_.item(Word::device, number_);
    pickle_.item(Word::address, segment.address);
    pickle_.item(Word::total_size, segment.size);
    pickle_.item(Word::allocated_size, allocated);
    pickle_.item(Word::active_size, allocated + segment.bytes(MapBlock::State::pending_free));
    pickle_.item(Word::requested_size, asked);
    pickle_.stream_item(segment.stream);
    if (known) {
      // Expandable segments of both kinds may have any size.
      if (!segment.expandable) {
        const bool small = pool_of_segment(segment.size) == BlockPool::small;
        pickle_.item(Word::segment_type, small ? Word::small : Word::large);
      }
      pickle_.pool_item(Word::segment_pool_id, segment.pool);
      pickle_.word(Word::is_expandable);
      pickle_.boolean(segment.expandable);
      pickle_.frames_item(segment.stack);
    } else {
      pickle_.remark_item("a recording does not know segments: these are pages of " +
                          to_string(store_.devices[device_].device) + " that blocks used");
    }
    pickle_.word(Word::blocks);
    pickle_.begin_list();
    for (const MapBlock& block : segment.blocks) {
      pickle_.next_item();
      write_block(block);
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_block(const MapBlock& block) {
    pickle_.begin_dict();
    pickle_.item(Word::address, block.address);
    pickle_.item(Word::size, block.size);
    pickle_.item(Word::requested_size, requested(block));
    switch (block.state) {
      case MapBlock::State::free:
        pickle_.item(Word::state, Word::inactive);
        break;
      case MapBlock::State::allocated:
        pickle_.item(Word::state, Word::active_allocated);
        break;
      case MapBlock::State::pending_free:
        pickle_.item(Word::state, Word::active_pending_free);
        break;
    }
    if (block.state != MapBlock::State::free && pickle_.has_frames(block.block.value)) {
      pickle_.block_frames_item(block.block.value);
    } else {
      pickle_.word(Word::frames);  // without it PyTorch's viewer takes the block for one of torch 2.0
      pickle_.begin_list();
      pickle_.end_list();
    }
    pickle_.end_dict();
  }

  const Store& store_;
  const std::size_t device_;
  const std::size_t number_;
  const BlockFilter& filter_;
  SnapshotPickle& pickle_;
};

}  // namespace

void write_device_segments(const Store& store, std::size_t device, std::size_t number, const BlockFilter& filter,
                           SnapshotPickle& pickle) {
  SegmentWriter(store, device, number, filter, pickle).write();
}

}  // namespace tidemark::pytorch
