#include "analyze/oom/fixes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/common/arithmetic.h"

namespace tidemark {
namespace {

constexpr std::size_t kMaxStacks = 3;

struct BlocksToFree {
  StackId stack;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t of_blocks = 0;
};

// What only puts a leak off comes after what stops it.
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

  // Whether the request passes once the driver has got so much back.
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
      if (finding.cause == OomCause::leak && finding.certain) add(OomFixKind::stop_leak, finding.bytes, false);
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

  void smaller_request() {
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
