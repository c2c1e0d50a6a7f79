// segments: each with its blocks.
#include <algorithm>
#include <utility>

#include "import/pytorch_snapshot/model/snapshot_builder.h"

namespace tidemark::pytorch {
namespace {

/// PyTorch writes three keys. Many blocks may share a dict, and each looks at all of it.
constexpr std::size_t kMaxHistoryItems = 32;

bool is_empty(PickleValue value) {
  return value.tag() == Tag::empty_list || value.tag() == Tag::none;
}

}  // namespace

bool SnapshotBuilder::fill_block(std::uint32_t id, std::span<const PickleValue> items) {
  SnapshotBlock& block = blocks_[id];
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    bool understood = true;
    switch (known(items[n])) {
      case Known::address:
        understood = tables.numbers.get_address(value, block.address);
        break;
      case Known::size:
        understood = tables.numbers.get(value, block.size);
        break;
      case Known::requested_size:
        understood = tables.numbers.get(value, block.requested_size);
        break;
      case Known::frames:
        understood = use_frames(block.stack, value);
        break;
      case Known::history:
        use_history(block, value);
        break;
      case Known::state:
        block.state = BlockState::unknown;
        if (known(value) == Known::inactive) block.state = BlockState::inactive;
        if (known(value) == Known::active_allocated) block.state = BlockState::active_allocated;
        if (known(value) == Known::active_pending_free || known(value) == Known::active_awaiting_free) {
          block.state = BlockState::active_pending_free;
        }
        understood = block.state != BlockState::unknown;
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::block, items[n]);
  }
  return true;
}

/// PyTorch 2.0: who had the block, the latest first.
void SnapshotBuilder::use_history(SnapshotBlock& block, PickleValue value) {
  if (value.tag() != Tag::container || containers_[value].items.empty()) return;
  const PickleValue latest = containers_[value].items.front();
  if (latest.tag() != Tag::container || !containers_[latest].is_dict) return;
  const std::vector<PickleValue>& items = containers_[latest].items;
  if (items.size() > kMaxHistoryItems) return;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    if (known(items[n]) == Known::real_size) tables.numbers.get(items[n + 1], block.requested_size);
    if (known(items[n]) == Known::frames) use_frames(block.stack, items[n + 1]);
  }
}

bool SnapshotBuilder::finish_segments(PickleValue list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  const std::vector<PickleValue> segments = std::move(all->items);
  bool understood = all->count == 0;
  for (const PickleValue value : segments) {
    Container* segment = use_once(value, true);
    if (segment == nullptr || !finish_segment(*segment)) understood = false;
    if (!failure_.empty()) return false;
  }
  return understood;
}

bool SnapshotBuilder::finish_segment(Container& dict) {
  SnapshotSegment segment;
  PickleValue blocks;
  bool is_segment = false;
  const std::vector<PickleValue> items = std::move(dict.items);
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    bool understood = true;
    switch (known(items[n])) {
      case Known::device:
        understood = get_device(value, segment.device);
        break;
      case Known::address:
        understood = tables.numbers.get_address(value, segment.address);
        break;
      case Known::total_size:
        is_segment = true;
        understood = tables.numbers.get(value, segment.total_size);
        break;
      case Known::allocated_size:
        understood = tables.numbers.get(value, segment.allocated_size);
        break;
      case Known::active_size:
        understood = tables.numbers.get(value, segment.active_size);
        break;
      case Known::requested_size:
        understood = tables.numbers.get(value, segment.requested_size);
        break;
      case Known::stream:
        if (!use_stream(segment.stream, value, understood)) return false;
        break;
      case Known::segment_pool_id:
        if (!use_pool(segment.pool, value, understood)) return false;
        break;
      case Known::segment_type:
        segment.large = known(value) == Known::large;
        understood = segment.large || known(value) == Known::small;
        break;
      case Known::is_expandable:
        understood = value.tag() == Tag::boolean;
        if (understood) segment.expandable = value.boolean();
        break;
      case Known::frames:
        understood = use_frames(segment.stack, value);
        break;
      case Known::blocks:
        is_segment = true;
        blocks = value;
        break;
      default:
        understood = false;
    }
    if (!understood) unknown_.key(Scope::segment, items[n]);
  }
  if (!is_segment) return false;
  if (blocks.tag() != Tag::unset && !is_empty(blocks) && !finish_blocks(segment, blocks)) {
    unknown_.key(Scope::segment, PickleValue(Tag::text, static_cast<std::uint32_t>(Known::blocks)));
  }
  snapshot_.segments.push_back(std::move(segment));
  return failure_.empty();
}

bool SnapshotBuilder::finish_blocks(SnapshotSegment& segment, PickleValue list) {
  Container* all = use_once(list, false);
  if (all == nullptr) return false;
  bool understood = all->count == 0 || all->run_of == Tag::block;
  if (!understood) return false;
  const auto from = blocks_.begin() + all->first;
  if (all->count > 0) segment.blocks.assign(from, from + all->count);
  for (const PickleValue value : all->items) {
    if (value.tag() == Tag::block) {
      segment.blocks.push_back(blocks_[value.id()]);
    } else {
      understood = false;
    }
  }
  std::uint64_t next = segment.address;
  for (SnapshotBlock& block : segment.blocks) {
    if (block.address == kAbsent) block.address = next;
    if (block.requested_size == kAbsent) block.requested_size = block.size;  // as PyTorch's own viewer has it
    next = block.address + block.size;
  }
  std::stable_sort(segment.blocks.begin(), segment.blocks.end(),
                   [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  all->items.clear();
  return understood;
}

}  // namespace tidemark::pytorch
