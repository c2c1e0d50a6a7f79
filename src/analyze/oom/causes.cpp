#include "analyze/oom/causes.h"

#include <algorithm>

#include "analyze/common/arithmetic.h"
#include "analyze/common/moment.h"
#include "base/units.h"

namespace tidemark {
namespace {

// The driver may refuse a little before its free memory is used up, for what it needs itself.
constexpr std::uint64_t kDriverReserve = 32 * kMiB;
// A sample may be a tenth of a second older than the request: modules that were loaded since, and the like.
constexpr std::uint64_t kSampleMargin = 128 * kMiB;
// Of a device, what context and libraries of this process may take without being another process.
constexpr double kOrdinaryOutside = 0.1;

std::uint64_t peak_reserved_until(const Store& store, const OutOfMemory& event) {
  std::uint64_t reserved = 0;
  std::uint64_t peak = 0;
  for (std::size_t index = 0; index < event.segment_changes; ++index) {
    const SegmentChange& change = store.segment_changes[index];
    if (change.device != event.device) continue;
    reserved = change.reserved ? reserved + change.size : saturating_subtract(reserved, change.size);
    peak = std::max(peak, reserved);
  }
  for (const TotalsChange& change : store.totals_changes) {  // of recordings, which know no segments
    if (change.change_count > event.change_count) break;
    if (change.device == event.device) peak = std::max(peak, change.reserved);
  }
  return peak;
}

// What PyTorch and the driver had together is what all others left: where it was more before, they took the difference.
std::uint64_t outside_grew(const Store& store, const OutOfMemory& event, std::uint64_t peak_reserved) {
  std::uint64_t most = peak_reserved;
  for (const OutOfMemory& earlier : store.out_of_memory) {
    if (&earlier == &event) break;
    if (earlier.device != event.device || !earlier.reserved || !earlier.device_free) continue;
    most = std::max(most, saturating_add(*earlier.reserved, *earlier.device_free));
  }
  return saturating_subtract(most, saturating_add(*event.reserved, *event.device_free));
}

OomRefusedBy find_refused_by(const OomFailure& failure) {
  if (!failure.caching || !failure.device_free || !failure.reserved) return OomRefusedBy::unknown;
  const std::uint64_t margin = failure.sampled_at_ns ? kSampleMargin : 0;
  if (*failure.device_free < failure.request.driver) {
    // Where nothing is left, the sample cannot have missed what was taken since.
    const bool full = *failure.device_free <= kDriverReserve || failure.request.driver - *failure.device_free > margin;
    return full ? OomRefusedBy::device : OomRefusedBy::unknown;
  }
  const std::uint64_t left = *failure.device_free - failure.request.driver;
  return left < std::max(margin, kDriverReserve) ? OomRefusedBy::unknown : OomRefusedBy::limit;
}

// A limit is compared with the size of a whole segment, for expandable ones too (alloc_block).
OomLimit find_limit(const OomFailure& failure, std::uint64_t peak_reserved) {
  const std::uint64_t below = saturating_add(*failure.reserved, failure.request.segment);
  // More was reserved before: the limit was set, or lowered, since.
  return {peak_reserved < below ? peak_reserved : *failure.reserved, below};
}

std::optional<std::uint64_t> find_missing(const OomFailure& failure) {
  switch (failure.refused_by) {
    case OomRefusedBy::device:
      return failure.request.driver - *failure.device_free;
    case OomRefusedBy::limit:
      return failure.limit->below - failure.limit->at_least;
    case OomRefusedBy::unknown:
      break;
  }
  return std::nullopt;
}

std::uint64_t demand(const OomFailure& failure) {
  const std::uint64_t cached = failure.cached.value_or(0);
  if (failure.refused_by == OomRefusedBy::device)
    return saturating_subtract(failure.request.bytes, saturating_add(*failure.device_free, cached));
  const std::uint64_t in_blocks = failure.cached ? saturating_subtract(*failure.reserved, cached) : failure.allocated;
  return failure.capacity ? saturating_subtract(saturating_add(in_blocks, failure.request.bytes), *failure.capacity)
                          : 0;
}

// Whether the request would have fitted had all cached memory been usable for it.
bool cached_would_do(const OomFailure& failure) {
  if (failure.cached.value_or(0) == 0) return false;
  switch (failure.refused_by) {
    case OomRefusedBy::device:
      return saturating_add(*failure.cached, *failure.device_free) >= failure.request.bytes;
    case OomRefusedBy::limit:
      return saturating_add(saturating_subtract(*failure.reserved, *failure.cached), failure.request.bytes) <=
             failure.limit->at_least;
    case OomRefusedBy::unknown:
      break;
  }
  return *failure.cached >= failure.request.bytes;
}

// In use outside PyTorch, as far as it is proven and more than any program takes. 0: nothing is.
std::uint64_t taken_by_others(const OomFailure& failure) {
  if (failure.refused_by != OomRefusedBy::device) return 0;
  const std::uint64_t half = (*failure.missing + 1) / 2;
  if (failure.outside && *failure.outside >= half &&
      static_cast<double>(*failure.outside) > kOrdinaryOutside * static_cast<double>(*failure.capacity)) {
    return *failure.outside;
  }
  return failure.outside_grew >= half ? failure.outside_grew : 0;
}

// The recording as it was at the failure, as far as analyze_leaks() looks at it.
Store until(const Store& store, const OutOfMemory& event) {
  const std::uint64_t change_count = event.change_count;
  Store first;
  static_cast<Overview&>(first) = store;
  std::erase_if(first.definitions.marks, [&](const Mark& mark) { return mark.time_ns > event.time_ns; });
  first.live_changes.assign(store.live_changes.begin(),
                            store.live_changes.begin() + static_cast<std::ptrdiff_t>(change_count));
  const auto end = std::lower_bound(store.blocks.birth_change.begin(), store.blocks.birth_change.end(), change_count);
  const auto count = end - store.blocks.birth_change.begin();
  const auto take = [&](const auto& from, auto& to) {
    if (!from.empty()) to.assign(from.begin(), from.begin() + count);
  };
  take(store.blocks.birth_change, first.blocks.birth_change);
  take(store.blocks.death_change, first.blocks.death_change);
  take(store.blocks.address, first.blocks.address);
  take(store.blocks.size, first.blocks.size);
  take(store.blocks.stack, first.blocks.stack);
  take(store.blocks.thread, first.blocks.thread);
  take(store.blocks.device, first.blocks.device);
  take(store.blocks.requested, first.blocks.requested);
  take(store.blocks.stream, first.blocks.stream);
  take(store.blocks.pool, first.blocks.pool);
  take(store.blocks.sequence, first.blocks.sequence);
  for (std::uint32_t& death : first.blocks.death_change) {
    if (death >= change_count) death = Blocks::kAlive;
  }
  return first;
}

// What the site's blocks hold at the failure.
std::uint64_t alive_bytes(const Store& store, const OutOfMemory& event, const LeakSite& site) {
  const Blocks& blocks = store.blocks;
  const std::vector<std::uint64_t>& asked = blocks.requested.empty() ? blocks.size : blocks.requested;
  std::uint64_t bytes = 0;
  for (const BlockId block : live_blocks(store, event.device, event.change_count)) {
    if (std::find(site.stack_ids.begin(), site.stack_ids.end(), blocks.stack[block.value]) == site.stack_ids.end()) {
      continue;
    }
    if (site.requested_bytes && asked[block.value] != *site.requested_bytes) continue;
    bytes += blocks.size[block.value];
  }
  return bytes;
}

bool steps_are_certain(const OomFailure& failure) {
  return failure.step_source == TrainingSteps::Source::optimizer ||
         failure.step_source == TrainingSteps::Source::annotation;
}

}  // namespace

void find_causes(const Store& store, const OutOfMemory& event, OomFailure& failure) {
  const std::uint64_t peak_reserved = peak_reserved_until(store, event);
  if (event.reserved && event.device_free) failure.outside_grew = outside_grew(store, event, peak_reserved);
  failure.refused_by = find_refused_by(failure);
  if (failure.refused_by == OomRefusedBy::limit) failure.limit = find_limit(failure, peak_reserved);
  failure.missing = find_missing(failure);

  const auto found = [&](OomCause cause, std::uint64_t bytes, bool certain = true) {
    failure.findings.push_back({cause, bytes, certain});
  };
  const std::uint64_t wanted = failure.caching ? failure.request.driver : failure.request.bytes;
  if (failure.leaked != 0 && failure.leaked >= failure.missing.value_or(wanted)) {
    found(OomCause::leak, failure.leaked, steps_are_certain(failure));
  }
  if (const std::uint64_t others = taken_by_others(failure)) found(OomCause::other_process, others);
  if (failure.refused_by == OomRefusedBy::limit) found(OomCause::limit, *failure.device_free);
  if (cached_would_do(failure)) found(OomCause::fragmentation, *failure.cached);
  if (const std::uint64_t bytes = demand(failure)) found(OomCause::demand, bytes);
  std::stable_partition(failure.findings.begin(), failure.findings.end(),
                        [](const OomFinding& finding) { return finding.certain; });
  const bool told = !failure.findings.empty() && failure.findings.front().certain;
  if (told) failure.cause = failure.findings.front().cause;
}

void find_leaks(const Store& store, Symbols& symbols, const Attribution* attribution, const OutOfMemory& event,
                OomFailure& failure) {
  LeakOptions options;
  options.attribution = attribution;
  options.device = to_string(failure.device);
  options.top = 0;
  options.min_growth = 0;
  const auto leaks = event.change_count == store.live_changes.size()
                         ? analyze_leaks(store, symbols, options)
                         : analyze_leaks(until(store, event), symbols, options);
  if (!leaks) return;
  failure.leak_verdict = leaks->verdict;
  failure.step_source = leaks->steps.source;
  failure.step_count = leaks->steps.starts.size();
  failure.leaks = leaks->leaks;
  failure.leak_objects = leaks->objects;
  std::erase_if(failure.leaks, [&](const LeakSite& site) {
    const std::uint64_t bytes = std::min(site.grown_bytes(), alive_bytes(store, event, site));
    failure.leaked += bytes;
    return bytes == 0;
  });
}

}  // namespace tidemark
