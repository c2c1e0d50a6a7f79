#include "store/builder.h"

#include <algorithm>
#include <utility>

namespace tidemark {

void StoreBuilder::add(const Event& event) {
  const auto change = static_cast<std::uint32_t>(store_.live_changes.size());
  if (change == Blocks::kAlive - 1) full_ = true;
  if (full_) return;
  const Tally::Effect effect = tally_.add(event);
  Blocks& blocks = store_.blocks;
  if (effect.kind == Tally::Effect::Kind::birth) {
    const auto block = static_cast<std::uint32_t>(blocks.count());
    blocks.birth_change.push_back(change);
    blocks.death_change.push_back(Blocks::kAlive);
    blocks.address.push_back(event.address);
    blocks.size.push_back(event.size);
    blocks.stack.push_back(event.stack);
    blocks.thread.push_back(event.thread);
    blocks.device.push_back(effect.device);
    add_attribution(event);
    if (event.slot.value >= block_of_slot_.size())
      block_of_slot_.resize(std::size_t{event.slot.value} + 1, Blocks::kAlive);
    block_of_slot_[event.slot.value] = block;
    store_.live_changes.push_back({effect.time_ns, BlockId{block}, true});
  } else if (effect.kind == Tally::Effect::Kind::death) {
    const std::uint32_t block = block_of_slot_[event.slot.value];
    blocks.death_change[block] = change;
    store_.live_changes.push_back({effect.time_ns, BlockId{block}, false});
  }
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add(const Event& event, const BlockDetails& details) {
  add(event);
  Blocks& blocks = store_.blocks;
  if (blocks.requested.size() == blocks.count()) return;
  blocks.requested.push_back(details.requested);
  blocks.stream.push_back(details.stream);
  blocks.pool.push_back(details.pool);
  add_metadata(event.slot, details.metadata);
}

void StoreBuilder::add_attribution(const Event& event) {
  Blocks& blocks = store_.blocks;
  if (blocks.sequence.empty() && event.sequence == 0 && !event.node.valid()) return;
  const std::size_t before = blocks.count() - 1;  // the event's block is the last
  if (blocks.sequence.empty() && before > 0) {
    blocks.node.resize(before);
    blocks.node_sequence.resize(before);
    blocks.sequence.resize(before);
  }
  blocks.node.push_back(event.node);
  blocks.node_sequence.push_back(event.node_sequence);
  blocks.sequence.push_back(event.sequence);
}

void StoreBuilder::begin() {
  tally_.begin();
  store_.segment_changes_before = store_.segment_changes.size();
}

void StoreBuilder::add_out_of_memory(const Event& event, OutOfMemoryDetails details) {
  if (full_) return;
  details.segment_changes = store_.segment_changes.size();
  const Tally::Effect effect = tally_.add_out_of_memory(event, details);
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add_totals(Device device, std::uint64_t time_ns, const AllocatorTotals& totals) {
  if (full_) return;
  const Tally::Effect effect = tally_.add_totals(device, time_ns, totals);
  if (effect.totals_changed) note_change(effect);
}

void StoreBuilder::add_segment_change(Device device, std::uint64_t time_ns, SegmentChange change) {
  const auto index = tally_.find_device(device);
  if (full_ || !index) return;
  change.time_ns = std::max(time_ns, tally_.now_ns());
  change.change_count = store_.live_changes.size();
  change.device = *index;
  store_.segment_changes.push_back(change);
}

void StoreBuilder::add_sample(const SampleRecord& record) {
  store_.samples.add(record);
}

void StoreBuilder::defer_free(SlotId slot) {
  if (full_) return;
  pending_of_slot_[slot.value] = store_.pending_frees.size();
  store_.pending_frees.push_back({BlockId{block_of_slot_[slot.value]}});
}

void StoreBuilder::add_metadata(SlotId slot, StringId text) {
  if (full_ || !text.valid() || slot.value >= block_of_slot_.size()) return;
  const BlockId block{block_of_slot_[slot.value]};
  if (block.valid()) store_.blocks.metadata.push_back({block, text});
}

void StoreBuilder::complete(std::uint64_t time_ns, SlotId slot) {
  const auto found = pending_of_slot_.find(slot.value);
  if (full_ || found == pending_of_slot_.end()) return;
  PendingFree& pending = store_.pending_frees[found->second];
  pending.until_ns = std::max(time_ns, tally_.now_ns());
  pending.until_change_count = store_.live_changes.size();
  pending_of_slot_.erase(found);
}

void StoreBuilder::note_change(const Tally::Effect& effect) {
  store_.totals_changes.push_back({effect.time_ns, store_.live_changes.size(), effect.kind != Tally::Effect::Kind::none,
                                   tally_.unrecorded(effect.device), tally_.reserved(effect.device),
                                   tally_.pending(effect.device), effect.device});
}

void StoreBuilder::reserve(std::size_t events) {
  Blocks& blocks = store_.blocks;
  const std::size_t most_blocks = events / 2 + 1;  // the others are frees
  blocks.birth_change.reserve(most_blocks);
  blocks.death_change.reserve(most_blocks);
  blocks.address.reserve(most_blocks);
  blocks.size.reserve(most_blocks);
  blocks.stack.reserve(most_blocks);
  blocks.thread.reserve(most_blocks);
  blocks.device.reserve(most_blocks);
  blocks.requested.reserve(most_blocks);
  blocks.stream.reserve(most_blocks);
  blocks.pool.reserve(most_blocks);
  store_.live_changes.reserve(events);
  store_.totals_changes.reserve(events);
}

void StoreBuilder::sort_metadata() {
  std::vector<BlockMetadata>& metadata = store_.blocks.metadata;
  std::stable_sort(metadata.begin(), metadata.end(), [](const BlockMetadata& left, const BlockMetadata& right) {
    return left.block.value < right.block.value;
  });
}

const Store& StoreBuilder::so_far(std::string path, Definitions definitions, bool growing,
                                  std::optional<std::uint64_t> window_began_ns) {
  static_cast<Overview&>(store_) = tally_.so_far(std::move(path), std::move(definitions));
  store_.source.growing = growing;
  store_.window_began_ns = window_began_ns;
  sort_metadata();
  return store_;
}

Store StoreBuilder::finish(std::string path, Definitions definitions) && {
  static_cast<Overview&>(store_) = std::move(tally_).finish(std::move(path), std::move(definitions));
  sort_metadata();
  return std::move(store_);
}

}  // namespace tidemark
