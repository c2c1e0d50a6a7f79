// segments: each with its blocks.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "import/pytorch_snapshot/model/snapshot_builder.h"

namespace tidemark::pytorch {
namespace {

/// PyTorch writes three keys. Many blocks may share a dict, and each reads all of it.
constexpr std::size_t kMaxHistoryItems = 32;

constexpr Known kWhere[] = {Known::device, Known::address, Known::total_size};

}  // namespace

bool SnapshotBuilder::fill_block(std::uint32_t id, std::span<const PickleValue> items) {
  SnapshotBlock& block = blocks_[id];
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    bool valid = true;
    switch (known(items[n])) {
      case Known::address:
        valid = tables.numbers.get_address(value, block.address);
        break;
      case Known::size:
        valid = tables.numbers.get(value, block.size);
        break;
      case Known::requested_size:
        valid = tables.numbers.get(value, block.requested_size);
        break;
      case Known::frames:
        valid = use_frames(block.stack, value);
        break;
      case Known::history:
        valid = use_history(block, value);
        break;
      case Known::state:
        block.state = BlockState::unknown;
        if (known(value) == Known::inactive) block.state = BlockState::inactive;
        if (known(value) == Known::active_allocated) block.state = BlockState::active_allocated;
        if (known(value) == Known::active_pending_free || known(value) == Known::active_awaiting_free) {
          block.state = BlockState::active_pending_free;
        }
        valid = block.state != BlockState::unknown;
        break;
      default:
        unknown_.key(Scope::block, items[n]);
    }
    if (!valid) invalid_.add(Scope::block, known(items[n]), id);
  }
  return true;
}

/// PyTorch 2.0: earlier owners of the block, the latest first. False: not in PyTorch's format.
bool SnapshotBuilder::use_history(SnapshotBlock& block, PickleValue value) {
  if (value.tag() == Tag::empty_list || value.tag() == Tag::none) return true;
  if (value.tag() != Tag::container || containers_[value].is_dict || containers_[value].items.empty()) return false;
  const PickleValue latest = containers_[value].items.front();
  if (latest.tag() != Tag::container || !containers_[latest].is_dict) return false;
  const std::vector<PickleValue>& items = containers_[latest].items;
  if (items.size() > kMaxHistoryItems) return false;
  bool valid = true;
  for (std::size_t n = 0; n < items.size(); n += 2) {
    if (known(items[n]) == Known::real_size) valid &= tables.numbers.get(items[n + 1], block.requested_size);
    if (known(items[n]) == Known::frames) valid &= use_frames(block.stack, items[n + 1]);
  }
  return valid;
}

void SnapshotBuilder::finish_segments(PickleValue list) {
  Container* all = use_once(list, false);
  if (all == nullptr || all->count != 0) return invalid_.add(Scope::snapshot, Known::segments, "");
  const std::vector<PickleValue> segments = std::move(all->items);
  for (std::size_t n = 0; n < segments.size(); ++n) {
    const std::string index = fmt::format("[{}]", n);
    Container* segment = use_once(segments[n], true);
    if (segment == nullptr || !finish_segment(*segment, "segments" + index)) {
      invalid_.add(Scope::snapshot, Known::segments, index);
    }
    if (!failure_.empty()) return;
  }
}

/// False: not a segment. A segment without place or size is left out.
bool SnapshotBuilder::finish_segment(Container& dict, const std::string& place) {
  SnapshotSegment segment;
  PickleValue blocks;
  bool is_segment = false;
  bool has_range = true;
  const std::vector<PickleValue> items = std::move(dict.items);
  for (std::size_t n = 0; n < items.size(); n += 2) {
    const PickleValue value = items[n + 1];
    bool valid = true;
    switch (known(items[n])) {
      case Known::device:
        valid = get_device(value, segment.device);
        break;
      case Known::address:
        valid = tables.numbers.get_address(value, segment.address);
        break;
      case Known::total_size:
        is_segment = true;
        valid = tables.numbers.get(value, segment.total_size);
        break;
      case Known::allocated_size:
        valid = tables.numbers.get(value, segment.allocated_size);
        break;
      case Known::active_size:
        valid = tables.numbers.get(value, segment.active_size);
        break;
      case Known::requested_size:
        valid = tables.numbers.get(value, segment.requested_size);
        break;
      case Known::stream:
        if (!use_stream(segment.stream, value, valid)) return false;
        break;
      case Known::segment_pool_id:
        if (!use_pool(segment.pool, value, valid)) return false;
        break;
      case Known::segment_type:
        segment.large = known(value) == Known::large;
        valid = segment.large || known(value) == Known::small;
        break;
      case Known::is_expandable:
        valid = value.tag() == Tag::boolean;
        if (valid) segment.expandable = value.boolean();
        break;
      case Known::frames:
        valid = use_frames(segment.stack, value);
        break;
      case Known::blocks:
        is_segment = true;
        blocks = value;
        break;
      default:
        unknown_.key(Scope::segment, items[n]);
    }
    if (valid) continue;
    invalid_.add(Scope::segment, known(items[n]), place);
    if (std::find(std::begin(kWhere), std::end(kWhere), known(items[n])) != std::end(kWhere)) has_range = false;
  }
  if (!is_segment) return false;
  if (blocks.tag() != Tag::unset && blocks.tag() != Tag::empty_list && !finish_blocks(segment, blocks, place)) {
    invalid_.add(Scope::segment, Known::blocks, place);
  }
  if (has_range) snapshot_.segments.push_back(std::move(segment));
  return failure_.empty();
}

bool SnapshotBuilder::finish_blocks(SnapshotSegment& segment, PickleValue list, const std::string& place) {
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
  invalid_.place(Scope::block, [&](std::uint32_t id) -> std::string {
    const auto index = index_in(*all, Tag::block, id);
    return index ? fmt::format("{}.blocks[{}]", place, *index) : "";
  });
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
