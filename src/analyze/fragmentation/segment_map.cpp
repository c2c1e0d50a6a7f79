#include "analyze/fragmentation/segment_map.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace tidemark {
namespace {

using Segments = std::map<std::uint64_t, MapSegment>;  // by address

bool continues(const MapSegment& left, const MapSegment& right) {
  return left.expandable && right.expandable && left.address + left.size == right.address &&
         left.stream == right.stream && left.pool == right.pool;
}

void reserve(Segments& segments, const SegmentChange& change) {
  MapSegment segment;
  segment.address = change.address;
  segment.size = change.size;
  segment.stream = change.stream;
  segment.pool = change.pool;
  segment.stack = change.stack;
  segment.expandable = change.expandable;
  auto at = segments.insert_or_assign(change.address, std::move(segment)).first;
  if (const auto next = std::next(at); next != segments.end() && continues(at->second, next->second)) {
    at->second.size += next->second.size;
    segments.erase(next);
  }
  if (at == segments.begin()) return;
  if (const auto before = std::prev(at); continues(before->second, at->second)) {
    before->second.size += at->second.size;
    segments.erase(at);
  }
}

// Takes the range out of whatever lies there.
void release(Segments& segments, const SegmentChange& change) {
  const std::uint64_t start = change.address;
  const std::uint64_t end = start + change.size;
  auto at = segments.upper_bound(start);
  if (at != segments.begin()) --at;
  while (at != segments.end() && at->first < end) {
    MapSegment& segment = at->second;
    const std::uint64_t segment_end = segment.address + segment.size;
    if (segment_end <= start) {
      ++at;
      continue;
    }
    if (segment_end > end) {
      MapSegment rest = segment;
      rest.address = end;
      rest.size = segment_end - end;
      segments.insert_or_assign(end, std::move(rest));
    }
    if (segment.address < start) {
      segment.size = start - segment.address;
      ++at;
    } else {
      at = segments.erase(at);
    }
  }
}

std::vector<MapBlock> blocks_at(const Store& store, std::size_t device, const TracePosition& position) {
  std::vector<MapBlock> found;
  const Blocks& blocks = store.blocks;
  const auto add = [&](BlockId block, MapBlock::State state) {
    found.push_back({blocks.address[block.value], blocks.size[block.value], state, block, blocks.stack[block.value]});
  };
  for (const BlockId block : live_blocks(store, device, position.change_count)) add(block, MapBlock::State::allocated);
  for (const PendingFree& pending : store.pending_frees) {
    const std::uint32_t death = blocks.death_change[pending.block.value];
    const bool done = pending.until_change_count < position.change_count ||
                      (pending.until_change_count == position.change_count && pending.until_ns <= position.time_ns);
    if (blocks.device[pending.block.value] == device && death < position.change_count && !done) {
      add(pending.block, MapBlock::State::pending_free);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const MapBlock& left, const MapBlock& right) { return left.address < right.address; });
  return found;
}

void add_free(MapSegment& segment, std::uint64_t from, std::uint64_t to) {
  if (from < to) segment.blocks.push_back({from, to - from, MapBlock::State::free, {}, {}});
}

// Puts blocks into the segments, both in order of address.
void fill(std::vector<MapSegment>& segments, const std::vector<MapBlock>& blocks) {
  auto block = blocks.begin();
  for (MapSegment& segment : segments) {
    const std::uint64_t end = segment.address + segment.size;
    std::uint64_t done = segment.address;
    while (block != blocks.end() && block->address < done) ++block;  // in no segment: a damaged file
    for (; block != blocks.end() && block->address < end; ++block) {
      if (block->address < done) continue;
      add_free(segment, done, block->address);
      segment.blocks.push_back(*block);
      segment.blocks.back().size = std::min(block->size, end - block->address);
      done = block->address + segment.blocks.back().size;
    }
    add_free(segment, done, end);
  }
}

// The allocation granularity of GPU drivers, and of Linux.
std::uint64_t page_size(Device device) {
  return std::uint64_t{1} << (device.type == DeviceType::cpu ? 12 : 21);
}

struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

}  // namespace

std::uint64_t MapSegment::bytes(MapBlock::State state) const {
  std::uint64_t sum = 0;
  for (const MapBlock& block : blocks) sum += block.state == state ? block.size : 0;
  return sum;
}

std::optional<TracePosition> position_at(const Store& store, std::size_t device, const Moment& moment) {
  const ResolvedMoment resolved = resolve_moment(store, moment, device);
  if (!resolved.time_ns) return std::nullopt;
  TracePosition position = {*resolved.time_ns, resolved.change_count, 0};
  for (const SegmentChange& change : store.segment_changes) {
    // The peak is right after a step: later changes at the same time do not belong to it.
    if (moment.kind == Moment::Kind::peak ? change.change_count >= position.change_count
                                          : change.time_ns > position.time_ns)
      break;
    ++position.segment_changes;
  }
  return position;
}

std::optional<TracePosition> position_at_peak_reserved(const Store& store, std::size_t device) {
  std::optional<TracePosition> peak;
  std::uint64_t reserved = 0;
  std::uint64_t most = 0;
  for (std::size_t index = 0; index < store.segment_changes.size(); ++index) {
    const SegmentChange& change = store.segment_changes[index];
    if (change.device != device) continue;
    reserved = change.reserved ? reserved + change.size : reserved - change.size;
    if (reserved <= most || !change.reserved) continue;
    most = reserved;
    peak = TracePosition{change.time_ns, change.change_count, index + 1};
  }
  return peak;
}

std::vector<MapSegment> segment_map(const Store& store, std::size_t device, const TracePosition& position) {
  Segments segments;
  for (std::size_t index = 0; index < position.segment_changes; ++index) {
    const SegmentChange& change = store.segment_changes[index];
    if (change.device == device) (change.reserved ? reserve : release)(segments, change);
  }
  std::vector<MapSegment> map;
  map.reserve(segments.size());
  for (auto& [address, segment] : segments) map.push_back(std::move(segment));
  fill(map, blocks_at(store, device, position));
  return map;
}

std::vector<MapSegment> used_pages(const Store& store, std::size_t device, const TracePosition& position) {
  const std::uint64_t page = page_size(store.devices[device].device);
  const Blocks& blocks = store.blocks;
  std::vector<PageRun> runs;
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    if (blocks.device[block] != device) continue;
    const std::uint64_t address = blocks.address[block];
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - address;
    const std::uint64_t last = address + std::min(std::max<std::uint64_t>(blocks.size[block], 1) - 1, room);
    runs.push_back({address / page, last / page});
  }
  std::sort(runs.begin(), runs.end(),
            [](const PageRun& left, const PageRun& right) { return left.first < right.first; });
  std::vector<MapSegment> map;
  for (const PageRun& run : runs) {
    const std::uint64_t first = run.first * page;
    if (map.empty() || map.back().address + map.back().size < first) {
      MapSegment& segment = map.emplace_back();
      segment.address = first;
    }
    MapSegment& segment = map.back();
    segment.size = std::max(segment.size, (run.last + 1) * page - segment.address);
  }
  fill(map, blocks_at(store, device, position));
  return map;
}

}  // namespace tidemark
