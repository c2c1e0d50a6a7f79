#include "analyze/advice/patterns.h"

#include <unordered_map>
#include <utility>

#include "analyze/common/earlier_frees.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/usage/temporary.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

class DevicePatterns {
 public:
  DevicePatterns(const Store& store, Symbols& symbols, std::size_t device, std::size_t top)
      : store_(store), symbols_(symbols), device_(device), top_(top) {}

  Pattern describe(const std::vector<EarlierFree>& earlier_frees) {
    Pattern pattern;
    pattern.count = earlier_frees.size();
    const ReducedPeak reduced = reduced_peak(store_, device_, earlier_frees);
    pattern.reduced_peak_bytes = reduced.bytes;
    pattern.reduced_peak_at_ns = reduced.at_ns;
    std::unordered_map<StackId, Sum> sums;
    for (const EarlierFree& earlier_free : earlier_frees) {
      Sum& sum = sums[store_.blocks.stack[earlier_free.block.value]];
      const std::uint64_t size = store_.blocks.size[earlier_free.block.value];
      ++sum.count;
      sum.bytes = saturating_add(sum.bytes, size);
      if (!earlier_free.covers(store_.devices[device_].peak_change_count)) continue;
      ++sum.peak_blocks;
      sum.peak_bytes += size;
      pattern.peak_bytes += size;
    }
    list_rows({sums.begin(), sums.end()}, pattern);
    return pattern;
  }

 private:
  struct Sum {
    std::uint64_t peak_bytes = 0;
    std::uint64_t peak_blocks = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };

  void list_rows(std::vector<std::pair<StackId, Sum>> sums, Pattern& pattern) {
    std::sort(sums.begin(), sums.end(), [](const auto& left, const auto& right) {
      const auto key = [](const Sum& sum) { return std::pair(sum.peak_bytes, sum.bytes); };
      return key(left.second) != key(right.second) ? key(left.second) > key(right.second) : left.first < right.first;
    });
    for (const auto& [stack, sum] : sums) {
      if (top_ == 0 || pattern.rows.size() < top_) {
        pattern.rows.push_back({name_stack(symbols_, stack), sum.peak_bytes, sum.peak_blocks, sum.count, sum.bytes});
      } else {
        ++pattern.other_rows;
        pattern.other_peak_bytes += sum.peak_bytes;
      }
    }
    tell_rows_apart(pattern.rows, &PatternRow::stack);
  }

  const Store& store_;
  Symbols& symbols_;
  const std::size_t device_;
  const std::size_t top_;
};

std::vector<EarlierFree> chosen(std::vector<EarlierFree> earlier_frees, const BlockFilter& filter) {
  std::erase_if(earlier_frees, [&](const EarlierFree& earlier_free) { return !filter(earlier_free.block.value); });
  return earlier_frees;
}

Lifetime lifetime_of(const Store& store, const TrainingSteps& steps, const std::vector<bool>& temporary,
                     std::uint32_t block) {
  const Blocks& blocks = store.blocks;
  const std::uint64_t birth = blocks.birth_change[block];
  const std::uint64_t death = blocks.death_change[block];
  if (death == Blocks::kAlive) return Lifetime::never_freed;
  if (temporary[block]) return Lifetime::temporary;
  if (steps.starts.empty()) return Lifetime::freed;
  return steps.begun_by(death) > steps.begun_by(birth) ? Lifetime::across_steps : Lifetime::within_step;
}

}  // namespace

Result<Patterns> analyze_patterns(const Store& store, Symbols& symbols, const PatternsOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  const TrainingSteps steps = options.steps != nullptr ? *options.steps : find_training_steps(store);
  const std::vector<bool> temporary = find_temporary(store, TemporaryOptions().within);
  std::optional<Adviser> adviser;
  if (options.attribution != nullptr) adviser.emplace(store, symbols, *options.attribution, &steps);
  Patterns result;
  result.steps_source = steps.source;
  result.steps = steps.count();
  for (const std::size_t index : *selected) {
    PatternsDevice& device = result.devices.emplace_back();
    device.totals = store.devices[index];
    for (const BlockId block : held_blocks(store, Moment{}, index, options.filter).blocks) {
      LifetimeUsage& held = device.held[static_cast<std::size_t>(lifetime_of(store, steps, temporary, block.value))];
      held.bytes += store.blocks.size[block.value];
      ++held.blocks;
    }
    DevicePatterns patterns(store, symbols, index, options.top);
    if (!steps.starts.empty()) {
      device.kept_into_next_step = patterns.describe(chosen(kept_into_next_step(store, index, steps), options.filter));
    }
    device.freed_after_allocation = patterns.describe(chosen(freed_after_allocation(store, index), options.filter));
    if (adviser) device.advice = adviser->at_peak(index);
  }
  result.recording = describe_recording(store, symbols);
  return result;
}

}  // namespace tidemark
