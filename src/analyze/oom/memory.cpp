#include "analyze/oom/memory.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/ledger/lines.h"
#include "analyze/ledger/replay.h"
#include "base/arithmetic.h"

namespace tidemark {

namespace {

using pytorch::BlockPool;
using State = MapBlock::State;

// The trace does not contain the pool of a segment. It follows from the size of ordinary segments, and from the blocks
// of expandable ones.
BlockPool pool_of(const MapSegment& segment) {
  if (!segment.expandable) return pytorch::pool_of_segment(segment.size);
  for (const MapBlock& block : segment.blocks) {
    if (block.state != State::free) return pytorch::get_pool(block.size);
  }
  return segment.size % pytorch::handle_size(BlockPool::large) == 0 ? BlockPool::large : BlockPool::small;
}

// The part of [from, to), addresses in the segment, that can be unmapped.
std::uint64_t whole_handles(const MapSegment& segment, std::uint64_t from, std::uint64_t to) {
  return pytorch::whole_handles(from - segment.address, to - segment.address, pool_of(segment));
}

// A sample by its place in the columns.
struct SampleAt {
  std::size_t device = 0;
  std::size_t index = 0;
};

// The allocator calls the driver before the event of its call is recorded: a sample this close to a change of reserved
// memory may be from before or after it.
constexpr std::uint64_t kSteadyNs = 5'000'000;
constexpr std::size_t kMaxSamplesLookedAt = 20;
// The recorder takes a sample at once when a request fails; the process may end or free memory afterwards.
constexpr std::uint64_t kMaxAfterNs = 1'000'000'000;

// Time between the sample and the nearest change of reserved memory on the device, in either direction, up to
// kSteadyNs.
std::uint64_t steady_ns(const Store& store, std::uint8_t device, std::uint64_t time_ns) {
  const std::vector<TotalsChange>& changes = store.totals_changes;
  const auto later = std::ranges::upper_bound(changes, time_ns, {}, &TotalsChange::time_ns);
  std::optional<std::uint64_t> reserved;  // when the sample was taken
  std::uint64_t since = 0;
  for (auto change = later; change != changes.begin();) {
    --change;
    if (change->device != device) continue;
    if (reserved && (change->reserved != *reserved || time_ns - since >= kSteadyNs)) break;
    reserved = change->reserved;
    since = change->time_ns;
  }
  if (!reserved) return 0;
  std::uint64_t steady = std::min(kSteadyNs, time_ns - since);
  for (auto change = later; change != changes.end() && change->time_ns - time_ns < steady; ++change) {
    if (change->device == device && change->reserved != *reserved) steady = change->time_ns - time_ns;
  }
  return steady;
}

// Whether a slow driver call was in progress: a sample of that time may have its memory or not.
bool is_during_call(const Store& store, std::uint64_t time_ns) {
  return std::ranges::any_of(store.samples.slow_calls,
                             [time_ns](const SlowDriverCall& call) { return call.covers(time_ns); });
}

// The last sample with used bytes that is not after the failure, and has no change of reserved memory near it; if there
// is none, the sample that is furthest from a change. nullopt if driver calls were in progress.
std::optional<SampleAt> sample_before(const Store& store, const OutOfMemory& event) {
  const Device device = store.devices[event.device].device;
  if (event.device_free || device.type != DeviceType::cuda || !event.reserved) return std::nullopt;
  const auto found = std::find_if(store.samples.devices.begin(), store.samples.devices.end(), [&](const auto& series) {
    return series.device.cuda_index == static_cast<std::uint32_t>(device.index);
  });
  if (found == store.samples.devices.end() || !found->device.total_bytes) return std::nullopt;
  const auto latest = latest_until(found->time_ns, event.time_ns);
  if (!latest) return std::nullopt;
  std::optional<std::size_t> best;
  std::uint64_t best_steady = 0;
  const std::size_t until = *latest < kMaxSamplesLookedAt ? 0 : *latest + 1 - kMaxSamplesLookedAt;
  for (std::size_t index = *latest + 1; index-- > until && best_steady < kSteadyNs;) {
    if (!found->used_bytes[index]) continue;
    const std::uint64_t steady = steady_ns(store, event.device, found->time_ns[index]);
    if (best && steady <= best_steady) continue;
    best = index;
    best_steady = steady;
  }
  if (!best) return std::nullopt;
  if (is_during_call(store, found->time_ns[*best])) return std::nullopt;
  return SampleAt{static_cast<std::size_t>(found - store.samples.devices.begin()), *best};
}

// The first sample after the failure, if reserved memory was the same from the failure until shortly after the sample.
// nullopt if a driver call was in progress.
std::optional<std::size_t> sample_after(const Store& store, const DeviceSeries& series, const OutOfMemory& event) {
  const auto later = std::ranges::upper_bound(series.time_ns, event.time_ns);
  auto index = static_cast<std::size_t>(later - series.time_ns.begin());
  while (index < series.time_ns.size() && !series.used_bytes[index]) ++index;
  if (index == series.time_ns.size() || series.time_ns[index] - event.time_ns > kMaxAfterNs) return std::nullopt;
  const std::uint64_t until_ns = series.time_ns[index] + kSteadyNs;
  const std::vector<TotalsChange>& changes = store.totals_changes;
  for (auto change = std::ranges::upper_bound(changes, event.time_ns, {}, &TotalsChange::time_ns);
       change != changes.end() && change->time_ns <= until_ns; ++change) {
    if (change->device == event.device && change->reserved != *event.reserved) return std::nullopt;
  }
  if (is_during_call(store, series.time_ns[index])) return std::nullopt;
  return index;
}

// `known_bytes`: of the recorded process.
std::optional<std::uint64_t> used_by_others(const DeviceSeries& series, std::uint64_t until_ns,
                                            std::uint64_t known_bytes) {
  const auto after = std::upper_bound(
      series.processes.begin(), series.processes.end(), until_ns,
      [](std::uint64_t time_ns, const DeviceProcessesSample& sample) { return time_ns < sample.time_ns; });
  if (after == series.processes.begin()) return std::nullopt;
  const DeviceProcessesSample& sample = *std::prev(after);
  const SampledProcess* const recorded = find_recorded_process(sample, known_bytes);
  if (recorded == nullptr) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const SampledProcess& process : sample.processes) {
    if (&process == recorded) continue;
    if (!process.bytes) return std::nullopt;
    bytes = saturating_add(bytes, *process.bytes);
  }
  return bytes;
}

// `held`: at sample `index`, the last one before the failure. A sample right after the failure is nearer, unless much
// less is used then: the process has ended.
SampledFree free_at(const Store& store, const DeviceSeries& series, std::size_t index, const OutOfMemory& event,
                    const HeldMemory& held) {
  const std::uint64_t reserved =
      event.device < held.devices.size() ? held.devices[event.device].reserved_bytes.value_or(0) : 0;
  const std::uint64_t driver = series.driver_reserved_bytes[index].value_or(0);
  const std::uint64_t usable = saturating_subtract(*series.device.total_bytes, driver);
  std::uint64_t outside = saturating_subtract(*series.used_bytes[index], reserved);
  SampledFree sampled;
  sampled.capacity = usable;
  sampled.at_ns = series.time_ns[index];
  sampled.other_processes = used_by_others(series, event.time_ns, reserved);
  if (const auto after = sample_after(store, series, event); after && *series.used_bytes[*after] >= *event.reserved) {
    const std::uint64_t outside_after = *series.used_bytes[*after] - *event.reserved;
    const std::uint64_t difference = std::max(outside, outside_after) - std::min(outside, outside_after);
    if (outside_after > outside || difference < kSampleMargin) {
      outside = outside_after;
      sampled.at_ns = series.time_ns[*after];
      sampled.margin = difference;
    }
  }
  sampled.free = saturating_subtract(usable, saturating_add(outside, *event.reserved));
  return sampled;
}

}  // namespace

void CachedMemory::add(std::uint64_t block) {
  bytes += block;
  ++blocks;
  largest = std::max(largest, block);
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
    for (const MapBlock& block : segment.blocks) {
      if (block.state == State::pending_free) cache_.pending += block.size;
      if (block.state == State::free) take_cached(segment, block.address, block.size);
    }
  }
}

bool OomMemory::usable(const MapSegment& segment) const {
  return segment.pool == pool_ && segment.stream == stream_ && pool_of(segment) == request_.pool;
}

bool OomMemory::takes(std::uint64_t block) const {
  return block >= request_.bytes && rules_.serves(block, request_.bytes);
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

void OomMemory::take_run(const MapSegment& segment, std::uint64_t from, std::uint64_t to, FreedMemory& freed) const {
  const std::uint64_t bytes = to - from;
  if (usable(segment) && takes(bytes)) freed.largest = std::max(freed.largest, bytes);
  if (segment.pool != default_pool_ || !flushed()) return;
  if (segment.expandable) {
    freed.released += whole_handles(segment, from, to);
  } else if (bytes == segment.size) {
    freed.released += bytes;
  }
}

FreedMemory OomMemory::freeing(std::span<OomBlock> blocks) const {
  std::sort(blocks.begin(), blocks.end(), [](const OomBlock& left, const OomBlock& right) {
    return std::tuple(left.segment, left.block) < std::tuple(right.segment, right.block);
  });
  FreedMemory freed;
  for (std::size_t index = 0; index < blocks.size();) {
    const std::uint32_t segment = blocks[index].segment;
    const std::vector<MapBlock>& in_segment = segments_[segment].blocks;
    std::size_t first = blocks[index].block;
    std::size_t last = first;
    ++index;
    if (first != 0 && in_segment[first - 1].state == State::free) --first;
    while (last + 1 < in_segment.size()) {
      const bool is_freed =
          index < blocks.size() && blocks[index].segment == segment && blocks[index].block == last + 1;
      if (!is_freed && in_segment[last + 1].state != State::free) break;
      index += is_freed ? 1 : 0;
      ++last;
    }
    take_run(segments_[segment], in_segment[first].address, in_segment[last].address + in_segment[last].size, freed);
  }
  return freed;
}

std::vector<std::optional<SampledFree>> sampled_free(const Store& store, const std::vector<std::size_t>& failures) {
  std::vector<std::optional<SampledFree>> free(failures.size());
  std::vector<std::optional<SampleAt>> samples;
  std::vector<LedgerLookup> lookups;
  for (const std::size_t failure : failures) {
    const auto& sample = samples.emplace_back(sample_before(store, store.out_of_memory[failure]));
    if (sample) lookups.push_back({store.samples.devices[sample->device].time_ns[sample->index], sample->device});
  }
  if (lookups.empty()) return free;
  const CollectedSamples collected = collect_samples(store, {}, lookups);
  auto held = collected.lookups.begin();
  for (std::size_t n = 0; n < failures.size(); ++n) {
    if (!samples[n]) continue;
    const DeviceSeries& series = store.samples.devices[samples[n]->device];
    free[n] = free_at(store, series, samples[n]->index, store.out_of_memory[failures[n]], held->held);
    ++held;
  }
  return free;
}

}  // namespace tidemark
