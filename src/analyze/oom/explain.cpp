#include "analyze/oom/explain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/ledger/replay.h"
#include "analyze/oom/diagnosis.h"
#include "analyze/oom/memory.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

// Equal failed requests, as indexes into Overview::out_of_memory.
struct FailureGroup {
  std::size_t first = 0;
  std::size_t last = 0;
  std::uint64_t count = 0;
};

std::vector<FailureGroup> group_failures(const Store& store, const std::vector<std::size_t>& devices) {
  std::map<std::tuple<std::uint8_t, StackId, std::uint64_t>, FailureGroup> groups;
  for (std::size_t index = 0; index < store.out_of_memory.size(); ++index) {
    const OutOfMemory& event = store.out_of_memory[index];
    if (std::find(devices.begin(), devices.end(), event.device) == devices.end()) continue;
    FailureGroup& group = groups[{event.device, event.stack, event.requested}];
    if (group.count++ == 0) group.first = index;
    group.last = index;
  }
  std::vector<FailureGroup> latest_first;
  latest_first.reserve(groups.size());
  for (const auto& [key, group] : groups) latest_first.push_back(group);
  std::sort(latest_first.begin(), latest_first.end(),
            [](const FailureGroup& left, const FailureGroup& right) { return left.last > right.last; });
  return latest_first;
}

// From the segment made last before the failure, else from the setting, which is the one at the recording's end.
bool uses_expandable(const Store& store, const OutOfMemory& event) {
  for (std::size_t index = event.segment_changes; index-- > 0;) {
    const SegmentChange& change = store.segment_changes[index];
    if (change.device == event.device && change.reserved) return change.expandable;
  }
  const auto& settings = store.source.allocator_settings;
  return settings && settings->expandable_segments.value_or(false);
}

struct Held {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t oldest_ns = 0;
  std::uint64_t newest_ns = 0;
};

class Explainer {
 public:
  Explainer(const Store& store, Symbols& symbols, const ExplainOptions& options)
      : store_(store), symbols_(symbols), options_(options) {}

  OomFailure explain(const FailureGroup& group, const std::optional<SampledFree>& sampled) {
    const OutOfMemory& event = store_.out_of_memory[group.last];
    OomFailure failure;
    failure.count = group.count;
    failure.first_ns = store_.out_of_memory[group.first].time_ns;
    take_request(event, sampled, failure);
    list_top_allocations(event, failure);
    const std::unique_ptr<OomMemory> memory = take_memory(event, failure);
    find_leaks(store_, symbols_, options_.attribution, event, failure);
    if (options_.attribution != nullptr) take_training_state(group.last, *options_.attribution, failure);
    find_causes(store_, event, failure);
    find_fixes(store_, symbols_, memory.get(), failure);
    if (options_.attribution != nullptr) find_failure_advice(event, failure);
    return failure;
  }

 private:
  void take_request(const OutOfMemory& event, const std::optional<SampledFree>& sampled, OomFailure& failure) {
    failure.device = store_.devices[event.device].device;
    failure.last_ns = event.time_ns;
    failure.stack = name_stack(symbols_, event.stack);
    const auto& threads = store_.definitions.threads;
    if (event.thread.value < threads.size()) failure.thread = threads[event.thread.value];
    if (event.stream && *event.stream < store_.streams.size()) failure.stream = store_.streams[*event.stream];
    if (event.pool && *event.pool < store_.pools.size()) failure.pool = store_.pools[*event.pool];
    failure.caching = failure.device.type != DeviceType::cpu;
    if (failure.caching) {
      failure.request = size_request(event.requested, uses_expandable(store_, event));
    } else {
      failure.request.bytes = event.requested;
    }
    failure.reserved = failure.caching ? event.reserved : std::nullopt;
    failure.capacity = options_.capacity;
    failure.device_free = event.device_free;
    if (!sampled) return;
    if (!failure.capacity) failure.capacity = sampled->capacity;
    failure.device_free = sampled->free;
    failure.sampled_at_ns = sampled->at_ns;
    failure.sample_margin = sampled->margin;
    failure.other_processes = sampled->other_processes;
  }

  void list_top_allocations(const OutOfMemory& event, OomFailure& failure) {
    const Holders& holders = options_.holders;
    std::unordered_map<StackId, Held> held;
    std::uint64_t recorded = 0;
    if (options_.attribution != nullptr) failure.of_batch = 0;
    for (const BlockId block : live_blocks(store_, event.device, event.change_count)) {
      recorded += store_.blocks.size[block.value];
      if (failure.of_batch && grows_with_batch(options_.attribution->blocks[block.value].category)) {
        *failure.of_batch += store_.blocks.size[block.value];
      }
      if (!holders.lists(block.value)) continue;
      const std::uint64_t born_ns = store_.live_changes[store_.blocks.birth_change[block.value]].time_ns;
      Held& stack = held[holders.of(store_, block.value)];
      if (stack.blocks++ == 0) stack.oldest_ns = born_ns;
      stack.newest_ns = born_ns;
      stack.bytes += store_.blocks.size[block.value];
    }
    failure.allocated = event.allocated.value_or(recorded);
    if (holders.all()) failure.unrecorded = saturating_subtract(failure.allocated, recorded);
    std::vector<StackUsage> usages;
    usages.reserve(held.size());
    for (const auto& [stack, bytes] : held) usages.push_back({event.device, stack, bytes.bytes, bytes.blocks});
    std::sort(usages.begin(), usages.end(), [](const StackUsage& left, const StackUsage& right) {
      return std::tuple(right.bytes, left.stack) < std::tuple(left.bytes, right.stack);
    });
    const std::size_t listed = options_.top == 0 ? usages.size() : std::min(usages.size(), options_.top);
    for (std::size_t index = 0; index < usages.size(); ++index) {
      const StackUsage& usage = usages[index];
      if (index >= listed) {
        ++failure.other_allocations;
        failure.other_bytes += usage.bytes;
        continue;
      }
      const Held& stack = held[usage.stack];
      const double share = share_of(usage.bytes, std::max(failure.allocated, recorded)).value_or(0);
      failure.top_allocations.push_back(
          {holders.name(symbols_, usage.stack), usage.bytes, usage.blocks, share, stack.oldest_ns, stack.newest_ns});
    }
    tell_rows_apart(failure.top_allocations, &TopAllocation::stack);
    if (holders.by_owner()) return;
    failure.call_sites = group_by_call_site(std::move(usages), symbols_, failure.allocated, options_.top);
  }

  // A training step holds activations for its backward pass; an evaluation, hardly any.
  void take_training_state(std::size_t index, const Attribution& attribution, OomFailure& failure) const {
    constexpr std::uint64_t kLeastActivations = 10;  // part of what is allocated
    const OutOfMemory& event = store_.out_of_memory[index];
    const Owner& request = attribution.out_of_memory[index];
    if (request.category != Category::unknown) failure.request_category = request.category;
    std::uint64_t activations = 0;
    std::uint64_t gradients = 0;
    for (const BlockId block : live_blocks(store_, event.device, event.change_count)) {
      const Category category = attribution.blocks[block.value].category;
      if (category == Category::activation) activations += store_.blocks.size[block.value];
      if (category == Category::gradient) gradients += store_.blocks.size[block.value];
    }
    const bool stepped = std::ranges::any_of(attribution.phases, [&](const PhaseSpan& span) {
      return span.phase == Phase::optimizer && span.to < event.change_count;
    });
    const bool in_step = request.phase != Phase::data && request.phase != Phase::other;
    failure.in_optimizer = request.phase == Phase::optimizer;
    const bool is_training = failure.in_optimizer || activations >= failure.allocated / kLeastActivations;
    if (stepped || !in_step || failure.step_count > 1 || !is_training) return;
    for (const TensorInBlock& found : attribution.tensors) {
      const ModelTensor& tensor = store_.definitions.tensors[found.tensor];
      const bool is_trainable = tensor.role == ModelTensor::Role::parameter && tensor.requires_grad;
      const bool is_here = store_.blocks.device[found.block.value] == event.device;
      if (is_trainable && is_here) failure.trainable_bytes += store_.blocks.size[found.block.value];
    }
    failure.first_step = failure.trainable_bytes != 0;
    failure.gradients_to_come = saturating_subtract(failure.trainable_bytes, gradients);
  }

  std::unique_ptr<OomMemory> take_memory(const OutOfMemory& event, OomFailure& failure) const {
    std::unique_ptr<OomMemory> memory;
    if (failure.reserved) failure.cached = saturating_subtract(*failure.reserved, failure.allocated);
    if (failure.caching && !store_.segment_changes.empty()) {
      memory = std::make_unique<OomMemory>(store_, event, failure.request);
      const OomCache& cache = memory->cache();
      failure.cache = cache;
      failure.fitting_block = memory->fits();
      failure.cached =
          cache.usable.bytes + cache.other_streams.bytes + cache.other_pools.bytes + cache.other_kinds.bytes;
    }
    if (failure.capacity && failure.reserved && failure.device_free) {
      const std::uint64_t known = saturating_add(*failure.reserved, *failure.device_free);
      if (known <= *failure.capacity) failure.outside = *failure.capacity - known;
    }
    return memory;
  }

  void find_failure_advice(const OutOfMemory& event, OomFailure& failure) {
    const std::uint64_t enough = failure.enough_bytes();
    if (!adviser_) adviser_.emplace(store_, symbols_, *options_.attribution);
    for (Advice& advice : adviser_->at_failure(event)) {
      OomAdvice& added = failure.advice.emplace_back();
      static_cast<Advice&>(added) = std::move(advice);
      const std::uint64_t request = added.has_request ? failure.request.bytes : 0;
      const bool suffices = saturating_add(added.avoidable_peak_bytes, request) >= enough;
      if (suffices || failure.missing) added.suffices = suffices;
    }
  }

  const Store& store_;
  Symbols& symbols_;
  const ExplainOptions& options_;
  std::optional<Adviser> adviser_;  // from the first failure on
};

}  // namespace

Result<Explanation> analyze_explain(const Store& store, Symbols& symbols, const ExplainOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  Explanation explanation;
  explanation.capacity = options.capacity;
  for (const std::size_t device : *selected) explanation.devices.push_back(store.devices[device]);
  std::vector<FailureGroup> groups = group_failures(store, *selected);
  explanation.failed_requests =
      std::accumulate(groups.begin(), groups.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const FailureGroup& group) { return sum + group.count; });
  if (options.failures != 0 && groups.size() > options.failures) {
    explanation.other_failures = groups.size() - options.failures;
    groups.resize(options.failures);
  }
  std::vector<std::size_t> failures;
  failures.reserve(groups.size());
  for (const FailureGroup& group : groups) failures.push_back(group.last);
  const std::vector<std::optional<SampledFree>> sampled = sampled_free(store, failures);
  Explainer explainer(store, symbols, options);
  for (std::size_t n = 0; n < groups.size(); ++n) {
    explanation.failures.push_back(explainer.explain(groups[n], sampled[n]));
  }
  explanation.kills = collect_host(store).kills;
  explanation.recording = describe_recording(store, symbols);
  return explanation;
}

}  // namespace tidemark
