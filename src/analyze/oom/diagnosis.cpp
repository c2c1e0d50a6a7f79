#include "analyze/oom/diagnosis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/common/moment.h"
#include "base/arithmetic.h"
#include "base/units.h"

namespace tidemark {

namespace {

// The driver may refuse a request slightly before its free memory is used up, because of its own needs.
constexpr std::uint64_t kDriverReserve = 32 * kMiB;
// Share of a device that this process's context and libraries may take without suggesting another process.
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
  for (const TotalsChange& change : store.totals_changes) {  // of recordings, which contain no segments
    if (change.change_count > event.change_count) break;
    if (change.device == event.device) peak = std::max(peak, change.reserved);
  }
  return peak;
}

// Memory outside PyTorch and the free memory: an earlier, larger sum means that others took the difference.
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
  const std::uint64_t margin = failure.sample_margin;
  if (*failure.device_free < failure.request.driver) {
    // If no memory is left, the sample includes all later allocations.
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

// Whether the request would have fitted if all cached memory had been usable for it. A remainder of the cache that any
// program has does not count. In a first training step, whose other requests are still to come, little is gained by it.
bool cached_would_do(const OomFailure& failure) {
  constexpr std::uint64_t kOrdinaryPart = 50;  // of reserved memory
  constexpr std::uint64_t kPartInFirstStep = 10;
  const std::uint64_t part = failure.first_step ? kPartInFirstStep : kOrdinaryPart;
  const std::uint64_t cached = failure.cached.value_or(0);
  if (cached == 0 || cached < failure.reserved.value_or(0) / part) return false;
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

// Memory outside PyTorch beyond any program's own needs, as far as it is proven. 0: none.
std::uint64_t taken_by_others(const OomFailure& failure) {
  if (failure.refused_by != OomRefusedBy::device) return 0;
  const std::uint64_t half = (*failure.missing + 1) / 2;
  if (failure.other_processes) return *failure.other_processes >= half ? *failure.other_processes : 0;
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

// Size of the site's blocks at the failure.
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

constexpr std::size_t kMaxStacks = 3;

struct BlocksToFree {
  StackId stack;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t of_blocks = 0;
};

// Fixes that only delay a leak come after fixes that stop it.
void rank_fixes(std::vector<OomFix>& fixes) {
  const auto rank = [](const OomFix& fix) {
    return std::tuple(fix.kind != OomFixKind::stop_leak, !fix.certain, fix.bytes);
  };
  std::stable_sort(fixes.begin(), fixes.end(),
                   [&](const OomFix& left, const OomFix& right) { return rank(left) < rank(right); });
}

class FixFinder {
 public:
  FixFinder(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure)
      : store_(store), symbols_(symbols), memory_(memory), failure_(failure) {}

  void find() {
    if (memory_ != nullptr && !memory_->fits()) {
      free_blocks();
      empty_caches();
      same_stream();
      expandable();
    }
    stop_leak();
    free_device();
    raise_limit();
    smaller_request();
    rank_fixes(failure_.fixes);
  }

 private:
  OomFix& add(OomFixKind kind, std::uint64_t bytes, bool certain = true) {
    OomFix& fix = failure_.fixes.emplace_back();
    fix.kind = kind;
    fix.bytes = bytes;
    fix.certain = certain;
    return fix;
  }

  // Whether the request succeeds after this number of bytes was returned to the driver.
  [[nodiscard]] bool passes_with(std::uint64_t released) const {
    const OomRequest& request = failure_.request;
    switch (failure_.refused_by) {
      case OomRefusedBy::device:
        return saturating_add(*failure_.device_free, released) >= request.driver;
      case OomRefusedBy::limit:
        return saturating_add(saturating_subtract(*failure_.reserved, released), request.segment) <=
               failure_.limit->at_least;
      case OomRefusedBy::unknown:
        break;
    }
    return released >= std::max(request.driver, request.segment);
  }
  [[nodiscard]] bool passes(std::vector<OomBlock> blocks) const {
    const FreedMemory freed = memory_->freeing(blocks);
    return freed.largest != 0 || passes_with(freed.released);
  }

  void free_blocks() {
    std::map<StackId, std::vector<std::pair<BlockId, OomBlock>>> by_stack;
    const std::vector<MapSegment>& segments = memory_->segments();
    for (std::uint32_t segment = 0; segment < segments.size(); ++segment) {
      for (std::uint32_t index = 0; index < segments[segment].blocks.size(); ++index) {
        const MapBlock& block = segments[segment].blocks[index];
        if (block.state != MapBlock::State::allocated) continue;
        const StackId stack = store_.blocks.stack[block.block.value];
        if (stack.valid()) by_stack[stack].push_back({block.block, {segment, index}});
      }
    }
    std::vector<BlocksToFree> found;
    for (auto& [stack, blocks] : by_stack) {
      if (const auto least = newest_that_do(stack, blocks)) found.push_back(*least);
    }
    const std::size_t kept = std::min(found.size(), kMaxStacks);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                      [](const BlocksToFree& left, const BlocksToFree& right) {
                        return std::tuple(left.bytes, left.stack) < std::tuple(right.bytes, right.stack);
                      });
    for (std::size_t index = 0; index < kept; ++index) {
      if (index != 0 && found[index].bytes > failure_.request.bytes) break;
      OomFix& fix = add(OomFixKind::free_blocks, found[index].bytes);
      fix.stack = name_stack(symbols_, found[index].stack);
      fix.blocks = found[index].blocks;
      fix.of_blocks = found[index].of_blocks;
    }
  }

  // Freeing more never does worse: so the number is found by halving.
  std::optional<BlocksToFree> newest_that_do(StackId stack, std::vector<std::pair<BlockId, OomBlock>>& blocks) const {
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& left, const auto& right) { return right.first < left.first; });
    const auto first = [&](std::size_t count) {
      std::vector<OomBlock> some;
      some.reserve(count);
      for (std::size_t index = 0; index < count; ++index) some.push_back(blocks[index].second);
      return some;
    };
    if (!passes(first(blocks.size()))) return std::nullopt;
    std::size_t too_few = 0;
    std::size_t enough = blocks.size();
    while (enough - too_few > 1) {
      const std::size_t middle = too_few + (enough - too_few) / 2;
      (passes(first(middle)) ? enough : too_few) = middle;
    }
    BlocksToFree found = {stack, 0, enough, blocks.size()};
    for (std::size_t index = 0; index < enough; ++index) found.bytes += store_.blocks.size[blocks[index].first.value];
    return found;
  }

  void empty_caches() {
    const OomCache& cache = *failure_.cache;
    if (cache.whole_in_private_pools != 0 && passes_with(cache.whole_in_private_pools)) {
      add(OomFixKind::empty_private_pool, cache.whole_in_private_pools);
    }
    if (cache.whole_in_default_pool != 0 && passes_with(cache.whole_in_default_pool)) {
      add(OomFixKind::empty_cache_before, cache.whole_in_default_pool);
    }
  }

  void same_stream() {
    const std::uint64_t largest = failure_.cache->other_streams.largest;
    if (failure_.stream && largest >= failure_.request.bytes) add(OomFixKind::same_stream, largest);
  }

  void expandable() {
    const std::uint64_t handles = failure_.cache->whole_handles;
    if (failure_.request.expandable || handles == 0 || !memory_->flushed()) return;
    if (passes_with(handles)) add(OomFixKind::expandable, handles, false);
  }

  void stop_leak() {
    for (const OomFinding& finding : failure_.findings) {
      // Where nothing else is known, what may be a leak is the best there is.
      const bool counts = finding.certain || !failure_.cause;
      if (finding.cause == OomCause::leak && counts) add(OomFixKind::stop_leak, finding.bytes, false);
    }
  }

  void free_device() {
    for (const OomFinding& finding : failure_.findings) {
      if (finding.cause == OomCause::other_process) add(OomFixKind::free_device, *failure_.missing);
    }
  }

  void raise_limit() {
    if (failure_.refused_by == OomRefusedBy::limit) add(OomFixKind::raise_limit, *failure_.missing);
  }

  // The size of parameters, gradients and optimizer states does not depend on the batch.
  void smaller_request() {
    if (failure_.in_optimizer) return;
    if (failure_.request_category && !grows_with_batch(*failure_.request_category)) return;
    std::uint64_t largest = memory_ != nullptr && !memory_->fits() ? failure_.cache->usable.largest : 0;
    const bool expandable = failure_.request.expandable;
    if (failure_.refused_by == OomRefusedBy::device) {
      largest = std::max(largest, pytorch::largest_new_block(*failure_.device_free, expandable));
    } else if (failure_.refused_by == OomRefusedBy::limit) {
      const std::uint64_t room = saturating_subtract(failure_.limit->at_least, *failure_.reserved);
      largest = std::max(largest, pytorch::largest_new_block(room, expandable));
    }
    if (largest != 0 && largest < failure_.request.bytes) {
      add(OomFixKind::smaller_request, failure_.request.bytes - largest);
    }
  }

  const Store& store_;
  Symbols& symbols_;
  const OomMemory* memory_;
  OomFailure& failure_;
};

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
  const std::uint64_t more = demand(failure);
  if (more != 0 || (failure.first_step && failure.findings.empty() && failure.refused_by == OomRefusedBy::device)) {
    found(OomCause::demand, more);
  }
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

void find_fixes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure) {
  if (failure.caching) FixFinder(store, symbols, memory, failure).find();
}

bool wants_simulation(const Explanation& explanation) {
  return std::any_of(explanation.failures.begin(), explanation.failures.end(), [](const OomFailure& failure) {
    return std::any_of(failure.findings.begin(), failure.findings.end(),
                       [](const OomFinding& finding) { return finding.cause == OomCause::fragmentation; });
  });
}

void cite_simulation(const Simulation& simulation, Explanation& explanation) {
  if (simulation.check.passed_failures != 0 || simulation.check.out_of_memory_ns) return;  // not the same course
  const auto meets_all = [&](const SimulatedSettings& run) {
    return !run.out_of_memory_ns && run.passed_failures == simulation.recorded_failures;
  };
  const auto best = std::find_if(simulation.runs.begin(), simulation.runs.end(), meets_all);
  for (OomFailure& failure : explanation.failures) {
    std::erase_if(failure.fixes, [](const OomFix& fix) { return fix.kind == OomFixKind::expandable; });
    if (best == simulation.runs.end()) continue;
    OomFix& fix = failure.fixes.emplace_back();
    fix.kind = OomFixKind::settings;
    fix.bytes = failure.request.bytes;
    fix.settings = best->settings;
    rank_fixes(failure.fixes);
  }
  explanation.simulated_by = simulation.replayer();
}

}  // namespace tidemark
