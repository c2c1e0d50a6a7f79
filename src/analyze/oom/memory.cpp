#include "analyze/oom/memory.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tidemark {
namespace {

using pytorch::BlockPool;
using Use = MapPiece::Use;

// The trace does not tell the pool of a segment. The size of ordinary segments shows it, the blocks of expandable ones.
BlockPool pool_of(const MapSegment& segment) {
  if (!segment.expandable) return pytorch::pool_of_segment(segment.size);
  for (const MapPiece& piece : segment.pieces) {
    if (piece.use != Use::free) return pytorch::get_pool(piece.size);
  }
  return segment.size % pytorch::handle_size(BlockPool::large) == 0 ? BlockPool::large : BlockPool::small;
}

// What can be unmapped of [from, to), addresses in the segment.
std::uint64_t whole_handles(const MapSegment& segment, std::uint64_t from, std::uint64_t to) {
  return pytorch::whole_handles(from - segment.address, to - segment.address, pool_of(segment));
}

}  // namespace

void CachedMemory::add(std::uint64_t piece) {
  bytes += piece;
  ++pieces;
  largest = std::max(largest, piece);
}

OomRequest size_request(std::uint64_t bytes, bool expandable) {
  OomRequest request;
  request.bytes = bytes;
  request.pool = pytorch::get_pool(bytes);
  request.expandable = expandable;
  request.segment = pytorch::get_allocation_size(bytes);
  request.driver = expandable ? pytorch::mapped_size(bytes) : request.segment;
  return request;
}

OomMemory::OomMemory(const Store& store, const OutOfMemory& failure, const OomRequest& request)
    : request_(request), rules_(store.source.allocator_settings.value_or(pytorch::AllocatorSettings{})) {
  const auto found = std::find(store.pools.begin(), store.pools.end(), PoolId{});
  if (found != store.pools.end()) default_pool_ = static_cast<std::uint16_t>(found - store.pools.begin());
  stream_ = failure.stream.value_or(0);
  pool_ = failure.pool.value_or(default_pool_);
  segments_ = segment_map(store, failure.device, {failure.time_ns, failure.change_count, failure.segment_changes});
  for (const MapSegment& segment : segments_) {
    for (const MapPiece& piece : segment.pieces) {
      if (piece.use == Use::pending) cache_.pending += piece.size;
      if (piece.use == Use::free) take_cached(segment, piece.address, piece.size);
    }
  }
}

bool OomMemory::usable(const MapSegment& segment) const {
  return segment.pool == pool_ && segment.stream == stream_ && pool_of(segment) == request_.pool;
}

bool OomMemory::takes(std::uint64_t piece) const {
  return piece >= request_.bytes && rules_.serves(piece, request_.bytes);
}

void OomMemory::take_cached(const MapSegment& segment, std::uint64_t address, std::uint64_t bytes) {
  const bool whole = bytes == segment.size;
  CachedMemory& kind = segment.pool != pool_       ? cache_.other_pools
                       : segment.stream != stream_ ? cache_.other_streams
                       : usable(segment)           ? cache_.usable
                                                   : cache_.other_kinds;
  kind.add(bytes);
  fits_ |= usable(segment) && takes(bytes);
  if (segment.pool != default_pool_) {
    if (whole) cache_.whole_in_private_pools += bytes;
    return;
  }
  if (whole) cache_.whole_in_default_pool += bytes;
  if (!segment.expandable) {
    cache_.whole_handles += whole_handles(segment, address, address + bytes);
  }
}

void OomMemory::take_run(const MapSegment& segment, std::uint64_t from, std::uint64_t to, OomGain& gain) const {
  const std::uint64_t bytes = to - from;
  if (usable(segment) && takes(bytes)) gain.largest = std::max(gain.largest, bytes);
  if (segment.pool != default_pool_ || !flushed()) return;
  if (segment.expandable) {
    gain.released += whole_handles(segment, from, to);
  } else if (bytes == segment.size) {
    gain.released += bytes;
  }
}

OomGain OomMemory::gain(std::span<OomBlock> blocks) const {
  std::sort(blocks.begin(), blocks.end(), [](const OomBlock& left, const OomBlock& right) {
    return std::tuple(left.segment, left.piece) < std::tuple(right.segment, right.piece);
  });
  OomGain gain;
  for (std::size_t index = 0; index < blocks.size();) {
    const std::uint32_t segment = blocks[index].segment;
    const std::vector<MapPiece>& pieces = segments_[segment].pieces;
    std::size_t first = blocks[index].piece;
    std::size_t last = first;
    ++index;
    if (first != 0 && pieces[first - 1].use == Use::free) --first;
    while (last + 1 < pieces.size()) {
      const bool freed = index < blocks.size() && blocks[index].segment == segment && blocks[index].piece == last + 1;
      if (!freed && pieces[last + 1].use != Use::free) break;
      index += freed ? 1 : 0;
      ++last;
    }
    take_run(segments_[segment], pieces[first].address, pieces[last].address + pieces[last].size, gain);
  }
  return gain;
}

}  // namespace tidemark
