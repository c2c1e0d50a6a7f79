#include "simulate/allocator_model.h"

#include <algorithm>
#include <limits>

namespace tidemark {

using pytorch::BlockPool;

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
// More than the memory of any GPU; the addresses suffice for it with any fragmentation.
constexpr std::uint64_t kMaxReserved = std::uint64_t{1} << 50;
// Expandable segments have a separate range of addresses, far from all others.
constexpr std::uint64_t kFirstExpandable = std::uint64_t{1} << 60;

}  // namespace

AllocatorModel::AllocatorModel(const pytorch::AllocatorSettings& settings, Limit limit)
    : rules_(settings),
      max_split_size_(settings.max_split_size.value_or(-1) < 0 ? kNoLimit
                                                               : static_cast<std::uint64_t>(*settings.max_split_size)),
      collection_threshold_(settings.garbage_collection_threshold.value_or(0)),
      limit_(limit),
      next_expandable_(kFirstExpandable) {
  outcome_.retries = 0;
  outcome_.segments = 0;
  addresses_[0] = kFirstExpandable;
}

std::optional<AllocatorModel::Handle> AllocatorModel::allocate(std::uint64_t requested, std::uint16_t stream,
                                                               std::uint16_t pool) {
  const std::uint64_t rounded = rules_.round_size(requested);
  const PoolKey key{pool, stream, pytorch::get_pool(rounded)};
  const Search search{key, &pool_of(key), rounded};
  Handle block = get_free_block(search);
  if (block == kNone) {
    garbage_collect_cached_blocks();
    block = alloc_block(search, false);
    if (block == kNone && release_available_cached_blocks(search)) block = alloc_block(search, false);
    if (block == kNone) {
      release_cached_blocks();
      block = alloc_block(search, true);
    }
  }
  if (block == kNone) return std::nullopt;
  if (rules_.should_split(blocks_[block].size, rounded, rules_.expandable_segments())) {
    insert_free(split(block, rounded));
  }
  blocks_[block].state = State::in_use;
  allocated_ += blocks_[block].size;
  outcome_.peak_allocated = std::max(outcome_.peak_allocated, allocated_);
  return block;
}

void AllocatorModel::free(Handle block) {
  allocated_ -= blocks_[block].size;
  blocks_[block].state = State::free;
  const Handle before = blocks_[block].before;
  if (const Handle behind = blocks_[block].behind; behind != kNone && blocks_[behind].state == State::free) {
    erase_free(behind);
    merge_behind(block);
  }
  if (before != kNone && blocks_[before].state == State::free) {
    erase_free(before);
    merge_behind(before);
    block = before;
  }
  insert_free(block);
}

AllocatorModel::Pool& AllocatorModel::pool_of(const PoolKey& key) {
  Pool& pool = pools_[key];
  pool.searches = &searches_[{std::get<0>(key), std::get<BlockPool>(key)}];
  return pool;
}

AllocatorModel::Handle AllocatorModel::new_block(Block block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<Handle>(blocks_.size() - 1);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  blocks_[handle] = block;
  return handle;
}

void AllocatorModel::insert_free(Handle block) {
  Block& free = blocks_[block];
  free.free_since = *free.pool->searches;
  free.pool->free.insert({free.size, {free.address, block}});
}

void AllocatorModel::erase_free(Handle block) {
  const Block& free = blocks_[block];
  free.pool->free.erase({free.size, {free.address, block}});
}

// Joins the block with the one after it, which is in no set.
void AllocatorModel::merge_behind(Handle block) {
  const Handle gone = blocks_[block].behind;
  blocks_[block].size += blocks_[gone].size;
  blocks_[block].behind = blocks_[gone].behind;
  if (blocks_[block].behind != kNone) blocks_[blocks_[block].behind].before = block;
  unused_.push_back(gone);
}

// Returns the rest after the front, in no set.
AllocatorModel::Handle AllocatorModel::split(Handle block, std::uint64_t front) {
  Block rest = blocks_[block];
  rest.address += front;
  rest.size -= front;
  rest.before = block;
  const Handle handle = new_block(rest);
  if (rest.behind != kNone) blocks_[rest.behind].before = handle;
  blocks_[block].behind = handle;
  blocks_[block].size = front;
  return handle;
}

AllocatorModel::Handle AllocatorModel::get_free_block(const Search& search) {
  ++*search.pool->searches;
  auto& free = search.pool->free;
  auto found = free.lower_bound({search.rounded, {0, 0}});
  if (found == free.end()) return kNone;
  for (auto next = std::next(found); blocks_[found->second.second].expandable && next != free.end() &&
                                     room_of(next->second.second) < room_of(found->second.second);
       ++next) {
    found = next;
  }
  if (!rules_.serves(found->first, search.rounded)) return kNone;
  const Handle block = found->second.second;
  free.erase(found);
  return block;
}

AllocatorModel::Handle AllocatorModel::alloc_block(const Search& search, bool retry) {
  if (retry) ++*outcome_.retries;
  const std::uint64_t size = pytorch::get_allocation_size(search.rounded);
  if (limit_.by_fraction && limit_.bytes && (size > *limit_.bytes || reserved_ > *limit_.bytes - size)) return kNone;
  if (rules_.expandable_segments()) return allocate_expandable(search);
  if (!driver_has(size)) return kNone;
  reserve(size);
  ++*outcome_.segments;
  Block block;
  block.address = take_addresses(size);
  block.size = size;
  block.pool = search.pool;
  block.key = search.key;
  return new_block(block);
}

void AllocatorModel::garbage_collect_cached_blocks() {
  if (!limit_.by_fraction || !limit_.bytes || collection_threshold_ <= 0) return;
  const auto threshold = static_cast<std::uint64_t>(collection_threshold_ * static_cast<double>(*limit_.bytes));
  if (reserved_ <= threshold) return;
  const std::uint64_t target = reserved_ - threshold;
  std::vector<Handle> whole;  // of the default pool, large ones
  double age = 0;
  const auto age_of = [&](Handle block) {
    return static_cast<double>(*blocks_[block].pool->searches - blocks_[block].free_since);
  };
  for (const auto& [key, pool] : pools_) {
    if (std::get<0>(key) != 0 || std::get<BlockPool>(key) != BlockPool::large) continue;
    for (const auto& entry : pool.free) {
      if (is_whole(blocks_[entry.second.second])) whole.push_back(entry.second.second);
    }
  }
  for (const Handle block : whole) age += age_of(block);
  std::uint64_t reclaimed = 0;
  for (bool freed = true; reclaimed < target && freed && !whole.empty();) {
    const double least = age / static_cast<double>(whole.size());
    std::vector<Handle> kept;
    for (const Handle block : whole) {
      if (blocks_[block].expandable || age_of(block) < least) {
        kept.push_back(block);
        continue;
      }
      reclaimed += blocks_[block].size;
      age -= age_of(block);
      release_block(block);
    }
    freed = kept.size() != whole.size();
    whole = std::move(kept);
  }
}

bool AllocatorModel::release_available_cached_blocks(const Search& search) {
  if (max_split_size_ == kNoLimit) return false;
  const std::uint64_t wanted = std::max(max_split_size_, search.rounded);
  auto& free = search.pool->free;
  if (const auto found = free.lower_bound({wanted, {0, 0}}); found != free.end()) {
    release_block(found->second.second);
    return true;
  }
  std::uint64_t released = 0;
  while (released < wanted && !free.empty() && free.rbegin()->first >= max_split_size_) {
    released += free.rbegin()->first;
    release_block(free.rbegin()->second.second);
  }
  return released >= wanted;
}

void AllocatorModel::release_cached_blocks() {
  for (auto& [key, pool] : pools_) {
    if (std::get<0>(key) != 0 && !released_pools_.contains(std::get<0>(key))) continue;  // a private pool in use
    std::vector<Handle> blocks;
    for (const auto& entry : pool.free) blocks.push_back(entry.second.second);
    for (const Handle block : blocks) {
      if (blocks_[block].expandable) {
        unmap_block(block);
      } else if (is_whole(blocks_[block])) {
        release_block(block);
      }
    }
  }
}

void AllocatorModel::release_block(Handle block) {
  erase_free(block);
  reserved_ -= blocks_[block].size;
  give_addresses(blocks_[block].address, blocks_[block].size);
  unused_.push_back(block);
}

bool AllocatorModel::driver_has(std::uint64_t bytes) const {
  const std::uint64_t limit = std::min(limit_.bytes.value_or(kMaxReserved), kMaxReserved);
  return bytes <= limit && reserved_ <= limit - bytes;
}

// The lowest range that is large enough.
std::uint64_t AllocatorModel::take_addresses(std::uint64_t bytes) {
  auto range = addresses_.begin();
  while (range->second < bytes) ++range;  // the last one is as good as endless
  const auto [start, size] = *range;
  addresses_.erase(range);
  if (size > bytes) addresses_[start + bytes] = size - bytes;
  ++segments_;
  return start;
}

void AllocatorModel::give_addresses(std::uint64_t start, std::uint64_t bytes) {
  auto range = addresses_.emplace(start, bytes).first;
  if (const auto behind = std::next(range); behind != addresses_.end() && behind->first == start + bytes) {
    range->second += behind->second;
    addresses_.erase(behind);
  }
  if (range != addresses_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == start) {
      before->second += range->second;
      addresses_.erase(range);
    }
  }
  --segments_;
}

void AllocatorModel::reserve(std::uint64_t bytes) {
  reserved_ += bytes;
  outcome_.peak_reserved = std::max(outcome_.peak_reserved, reserved_);
}

AllocatorState AllocatorModel::state() const {
  AllocatorState state{allocated_, reserved_, 0, 0};
  for (const auto& [key, pool] : pools_) {
    *state.free_blocks += pool.free.size();
    if (!pool.free.empty()) state.largest_free = std::max(*state.largest_free, pool.free.rbegin()->first);
  }
  return state;
}

AllocatorOutcome AllocatorModel::outcome() const {
  AllocatorOutcome outcome = outcome_;
  outcome.peak_active = outcome.peak_allocated;
  outcome.end_segments = segments_;
  outcome.at_end = state();
  return outcome;
}

namespace {

// Range of addresses of an expandable segment: larger than the memory of any GPU.
constexpr std::uint64_t kSegmentAddresses = std::uint64_t{1} << 46;

}  // namespace

// Size for best fit: the block and the unmapped memory after it.
std::uint64_t AllocatorModel::room_of(Handle block) const {
  const Handle behind = blocks_[block].behind;
  const bool grows = behind != kNone && blocks_[behind].state == State::unmapped;
  return blocks_[block].size + (grows ? blocks_[behind].size : 0);
}

// The lowest place where adjacent free and unmapped blocks are large enough.
AllocatorModel::Handle AllocatorModel::find_expandable_block(const Search& search) {
  for (const auto& [address, unmapped] : search.pool->unmapped) {
    Handle first = unmapped;
    const Handle before = blocks_[first].before;
    if (before != kNone && blocks_[before].state == State::free) first = before;
    std::uint64_t room = 0;
    for (Handle next = first; room < search.rounded && next != kNone && blocks_[next].state != State::in_use;
         next = blocks_[next].behind) {
      room += blocks_[next].size;
    }
    if (room >= search.rounded) return first;
  }
  Block block;
  block.address = next_expandable_;
  block.size = kSegmentAddresses;
  block.pool = search.pool;
  block.key = search.key;
  block.state = State::unmapped;
  block.expandable = true;
  next_expandable_ += kSegmentAddresses;
  const Handle handle = new_block(block);
  search.pool->unmapped[block.address] = handle;
  return handle;
}

AllocatorModel::Handle AllocatorModel::allocate_expandable(const Search& search) {
  if (search.rounded > kSegmentAddresses) return kNone;
  Handle block = find_expandable_block(search);
  if (blocks_[block].state == State::unmapped) {
    block = map_block(block, std::min(blocks_[block].size, search.rounded));
    if (block == kNone) return kNone;
  }
  while (blocks_[block].size < search.rounded) {
    const Handle behind = blocks_[block].behind;
    block = map_block(behind, std::min(blocks_[behind].size, search.rounded - blocks_[block].size));
    if (block == kNone) return kNone;
  }
  erase_free(block);
  return block;
}

// Maps the first `bytes` of an unmapped block, in whole handles. Returns the free block that contains them; none if the
// driver has no memory.
AllocatorModel::Handle AllocatorModel::map_block(Handle block, std::uint64_t bytes) {
  const std::uint64_t handle = pytorch::handle_size(std::get<pytorch::BlockPool>(blocks_[block].key));
  const std::uint64_t mapped = std::min((bytes + handle - 1) / handle * handle, blocks_[block].size);
  if (!driver_has(mapped)) return kNone;
  reserve(mapped);
  Pool& pool = *blocks_[block].pool;
  pool.unmapped.erase(blocks_[block].address);
  if (mapped < blocks_[block].size) {
    const Handle rest = split(block, mapped);
    pool.unmapped[blocks_[rest].address] = rest;
  }
  blocks_[block].state = State::free;
  if (const Handle behind = blocks_[block].behind; behind != kNone && blocks_[behind].state == State::free) {
    erase_free(behind);
    merge_behind(block);
  }
  if (const Handle before = blocks_[block].before; before != kNone && blocks_[before].state == State::free) {
    erase_free(before);
    merge_behind(before);
    block = before;
  }
  insert_free(block);
  return block;
}

// Gives the handles that lie wholly in a free block back to the driver.
void AllocatorModel::unmap_block(Handle block) {
  const std::uint64_t handle = pytorch::handle_size(std::get<pytorch::BlockPool>(blocks_[block].key));
  // Segments begin at a multiple of kSegmentAddresses, which is not a multiple of handles of 20 MiB: offsets count.
  const std::uint64_t start = blocks_[block].address / kSegmentAddresses * kSegmentAddresses;
  const std::uint64_t offset = blocks_[block].address - start;
  const std::uint64_t size = blocks_[block].size;
  const std::uint64_t begin = (offset + handle - 1) / handle * handle;
  const std::uint64_t end = (offset + size) / handle * handle;
  if (end <= begin) return;
  erase_free(block);
  Handle gone = block;
  if (begin > offset) {
    gone = split(block, begin - offset);
    insert_free(block);
  }
  if (offset + size > end) insert_free(split(gone, end - begin));
  reserved_ -= end - begin;
  blocks_[gone].state = State::unmapped;
  Pool& pool = *blocks_[gone].pool;
  if (const Handle behind = blocks_[gone].behind; behind != kNone && blocks_[behind].state == State::unmapped) {
    pool.unmapped.erase(blocks_[behind].address);
    merge_behind(gone);
  }
  if (const Handle before = blocks_[gone].before; before != kNone && blocks_[before].state == State::unmapped) {
    pool.unmapped.erase(blocks_[before].address);
    merge_behind(before);
    gone = before;
  }
  pool.unmapped[blocks_[gone].address] = gone;
}

}  // namespace tidemark
