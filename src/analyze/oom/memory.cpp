#include "analyze/oom/memory.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "analyze/common/saturating.h"

namespace tidemark {
namespace {

using Use = MapPiece::Use;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmallSize = kMiB;           // kSmallSize: the largest block of the small pool
constexpr std::uint64_t kSmallSegment = 2 * kMiB;    // kSmallBuffer; a handle of an expandable segment, too
constexpr std::uint64_t kLargeSegment = 20 * kMiB;   // kLargeBuffer; likewise
constexpr std::uint64_t kOwnSegment = 10 * kMiB;     // kMinLargeAlloc: from here on a request gets one of its size
constexpr std::uint64_t kSegmentGranule = 2 * kMiB;  // kRoundLarge
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t granule) {
  return bytes > kUnlimited - granule ? kUnlimited : (bytes + granule - 1) / granule * granule;
}

// Bytes of the whole handles in a range of a segment.
std::uint64_t handles_in(const MapSegment& segment, std::uint64_t from, std::uint64_t to, std::uint64_t handle) {
  const std::uint64_t first = round_up(from - segment.address, handle);
  const std::uint64_t last = (to - segment.address) / handle * handle;
  return last > first ? last - first : 0;
}

// The kind of a segment is not in the trace. Ordinary segments tell by their size, expandable ones by their blocks.
bool is_small(const MapSegment& segment) {
  if (!segment.expandable) return segment.size == kSmallSegment;
  for (const MapPiece& piece : segment.pieces) {
    if (piece.use != Use::free) return piece.size <= kSmallSize;
  }
  return segment.size % kLargeSegment != 0;
}

std::uint64_t handle_size(bool small) {
  return small ? kSmallSegment : kLargeSegment;
}

std::uint64_t max_split_size(const Store& store) {
  const auto& settings = store.source.allocator_settings;
  if (!settings || settings->max_split_size.value_or(-1) < 0) return kUnlimited;
  return static_cast<std::uint64_t>(*settings->max_split_size);
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
  request.small = bytes <= kSmallSize;
  request.expandable = expandable;
  request.segment = request.small         ? kSmallSegment
                    : bytes < kOwnSegment ? kLargeSegment
                                          : round_up(bytes, kSegmentGranule);
  request.driver = expandable ? round_up(bytes, handle_size(request.small)) : request.segment;
  return request;
}

std::uint64_t largest_request(std::uint64_t bytes, bool expandable) {
  const std::uint64_t granule = expandable ? kLargeSegment : kSegmentGranule;
  const std::uint64_t largest = bytes / granule * granule;
  return largest < kOwnSegment ? 0 : largest;
}

OomMemory::OomMemory(const Store& store, const OutOfMemory& failure, const OomRequest& request)
    : request_(request), max_split_size_(max_split_size(store)) {
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
  return segment.pool == pool_ && segment.stream == stream_ && is_small(segment) == request_.small;
}

// As get_free_block: blocks of max_split_size are not split, and serve only requests that nearly fill them.
bool OomMemory::takes(std::uint64_t piece) const {
  if (piece < request_.bytes) return false;
  if (request_.bytes < max_split_size_) return piece < max_split_size_;
  return piece < saturating_add(request_.bytes, kLargeSegment);
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
    cache_.whole_handles += handles_in(segment, address, address + bytes, handle_size(is_small(segment)));
  }
}

void OomMemory::take_run(const MapSegment& segment, std::uint64_t from, std::uint64_t to, OomGain& gain) const {
  const std::uint64_t bytes = to - from;
  if (usable(segment) && takes(bytes)) gain.largest = std::max(gain.largest, bytes);
  if (segment.pool != default_pool_ || !flushed()) return;
  if (segment.expandable) {
    gain.released += handles_in(segment, from, to, handle_size(is_small(segment)));
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
