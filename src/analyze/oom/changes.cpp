#include "analyze/oom/changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/common/saturating.h"

namespace tidemark {
namespace {

constexpr std::size_t kMostStacks = 3;

struct OfStack {
  StackId stack;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t of_blocks = 0;
};

class Changes {
 public:
  Changes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure)
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
    // What only puts a leak off comes after what stops it.
    const auto rank = [](const OomChange& change) {
      return std::tuple(change.remedy != OomRemedy::stop_leak, !change.certain, change.bytes);
    };
    std::stable_sort(failure_.changes.begin(), failure_.changes.end(),
                     [&](const OomChange& left, const OomChange& right) { return rank(left) < rank(right); });
  }

 private:
  OomChange& add(OomRemedy remedy, std::uint64_t bytes, bool certain = true) {
    OomChange& change = failure_.changes.emplace_back();
    change.remedy = remedy;
    change.bytes = bytes;
    change.certain = certain;
    return change;
  }

  // Whether the request passes once the driver has got so much back.
  [[nodiscard]] bool passes_with(std::uint64_t released) const {
    const OomRequest& request = failure_.request;
    switch (failure_.stop) {
      case OomStop::device:
        return saturating_add(*failure_.device_free, released) >= request.driver;
      case OomStop::limit:
        return saturating_add(saturating_subtract(*failure_.reserved, released), request.segment) <=
               failure_.limit->at_least;
      case OomStop::unknown:
        break;
    }
    return released >= std::max(request.driver, request.segment);
  }
  [[nodiscard]] bool passes(std::vector<OomBlock> blocks) const {
    const OomGain gain = memory_->gain(blocks);
    return gain.largest != 0 || passes_with(gain.released);
  }

  void free_blocks() {
    std::map<StackId, std::vector<std::pair<BlockId, OomBlock>>> by_stack;
    const std::vector<MapSegment>& segments = memory_->segments();
    for (std::uint32_t segment = 0; segment < segments.size(); ++segment) {
      for (std::uint32_t piece = 0; piece < segments[segment].pieces.size(); ++piece) {
        const MapPiece& block = segments[segment].pieces[piece];
        if (block.use != MapPiece::Use::used) continue;
        const StackId stack = store_.blocks.stack[block.block.value];
        if (stack.valid()) by_stack[stack].push_back({block.block, {segment, piece}});
      }
    }
    std::vector<OfStack> found;
    for (auto& [stack, blocks] : by_stack) {
      if (const auto least = newest_that_do(stack, blocks)) found.push_back(*least);
    }
    const std::size_t kept = std::min(found.size(), kMostStacks);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                      [](const OfStack& left, const OfStack& right) {
                        return std::tuple(left.bytes, left.stack) < std::tuple(right.bytes, right.stack);
                      });
    for (std::size_t index = 0; index < kept; ++index) {
      if (index != 0 && found[index].bytes > failure_.request.bytes) break;
      OomChange& change = add(OomRemedy::free_blocks, found[index].bytes);
      change.stack = name_stack(symbols_, found[index].stack);
      change.blocks = found[index].blocks;
      change.of_blocks = found[index].of_blocks;
    }
  }

  // Freeing more never does worse: so the number is found by halving.
  std::optional<OfStack> newest_that_do(StackId stack, std::vector<std::pair<BlockId, OomBlock>>& blocks) const {
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
    OfStack found = {stack, 0, enough, blocks.size()};
    for (std::size_t index = 0; index < enough; ++index) found.bytes += store_.blocks.size[blocks[index].first.value];
    return found;
  }

  void empty_caches() {
    const OomCache& cache = *failure_.cache;
    if (cache.whole_in_private_pools != 0 && passes_with(cache.whole_in_private_pools)) {
      add(OomRemedy::empty_private_pool, cache.whole_in_private_pools);
    }
    if (cache.whole_in_default_pool != 0 && passes_with(cache.whole_in_default_pool)) {
      add(OomRemedy::empty_cache_before, cache.whole_in_default_pool);
    }
  }

  void same_stream() {
    const std::uint64_t largest = failure_.cache->other_streams.largest;
    if (failure_.stream && largest >= failure_.request.bytes) add(OomRemedy::same_stream, largest);
  }

  void expandable() {
    const std::uint64_t handles = failure_.cache->whole_handles;
    if (failure_.request.expandable || handles == 0 || !memory_->flushed()) return;
    if (passes_with(handles)) add(OomRemedy::expandable, handles, false);
  }

  void stop_leak() {
    for (const OomFinding& finding : failure_.findings) {
      if (finding.cause == OomCause::leak && finding.certain) add(OomRemedy::stop_leak, finding.bytes, false);
    }
  }

  void free_device() {
    for (const OomFinding& finding : failure_.findings) {
      if (finding.cause == OomCause::other_process) add(OomRemedy::free_device, *failure_.missing);
    }
  }

  void raise_limit() {
    if (failure_.stop == OomStop::limit) add(OomRemedy::raise_limit, *failure_.missing);
  }

  void smaller_request() {
    std::uint64_t largest = memory_ != nullptr && !memory_->fits() ? failure_.cache->usable.largest : 0;
    const bool expandable = failure_.request.expandable;
    if (failure_.stop == OomStop::device) {
      largest = std::max(largest, pytorch::largest_new_block(*failure_.device_free, expandable));
    } else if (failure_.stop == OomStop::limit) {
      const std::uint64_t room = saturating_subtract(failure_.limit->at_least, *failure_.reserved);
      largest = std::max(largest, pytorch::largest_new_block(room, expandable));
    }
    if (largest != 0 && largest < failure_.request.bytes) {
      add(OomRemedy::smaller_request, failure_.request.bytes - largest);
    }
  }

  const Store& store_;
  Symbols& symbols_;
  const OomMemory* memory_;
  OomFailure& failure_;
};

}  // namespace

void find_changes(const Store& store, Symbols& symbols, const OomMemory* memory, OomFailure& failure) {
  if (failure.caching) Changes(store, symbols, memory, failure).find();
}

}  // namespace tidemark
