// What raises the peak: memory at the peak by lifetime, blocks kept alive into the next step, blocks freed right after
// another allocation, and where it is known whose memory the blocks are, advice.
//
// DrGPUM (Lin et al., ASPLOS 2023) names more patterns. Early allocation, late deallocation, unused allocations,
// idleness and dead writes need to know when memory is read and written, which recordings and snapshots do not say. The
// savings here are therefore bounds: exact by replay, if the program does not need the blocks in the time they are
// taken away for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/steps/training_steps.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct PatternsOptions {
  std::optional<std::string> device;         ///< only this one: "cuda:0"
  std::size_t top = 10;                      ///< stacks to list for each pattern of a device; 0 = all
  const TrainingSteps* steps = nullptr;      ///< steps already found in this store; null: detected here
  BlockFilter filter = {};                   ///< which blocks are looked at; advice is about all
  const Attribution* attribution = nullptr;  ///< of this store; null: no advice
};

/// How long a block lives. The first that applies.
enum class Lifetime : std::uint8_t {
  never_freed,
  temporary,     ///< freed after at most one other allocation on its device, as in analyze_temporary()
  across_steps,  ///< freed in a later training step than it was allocated in
  within_step,
  freed,  ///< and there are no training steps to tell more
};
inline constexpr std::size_t kLifetimes = 5;
inline constexpr EnumName<Lifetime> kLifetimeNames[] = {{Lifetime::never_freed, "never_freed"},
                                                        {Lifetime::temporary, "temporary"},
                                                        {Lifetime::across_steps, "across_steps"},
                                                        {Lifetime::within_step, "within_step"},
                                                        {Lifetime::freed, "freed"}};
[[nodiscard]] constexpr std::string_view name_of(Lifetime lifetime) {
  return name_in(kLifetimeNames, lifetime);
}

/// What blocks of one lifetime hold at the peak.
struct LifetimeUsage {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// The blocks of one stack in a pattern.
struct PatternRow {
  NamedStack stack;
  std::uint64_t peak_bytes = 0;   ///< of those that are alive at the device's peak, and would not be
  std::uint64_t peak_blocks = 0;  ///< likewise
  std::uint64_t count = 0;        ///< in the whole recording
  std::uint64_t bytes = 0;        ///< the sum of their sizes
};

struct Pattern {
  std::uint64_t count = 0;
  std::uint64_t peak_bytes = 0;  ///< of the blocks alive at the device's peak
  /// What the peak would be if each of these blocks had been freed earlier (see PatternsDevice) and everything else had
  /// happened as it did.
  std::uint64_t reduced_peak_bytes = 0;
  std::optional<std::uint64_t> reduced_peak_at_ns;  ///< its first time; none when nothing was allocated
  std::vector<PatternRow> rows;                     ///< most bytes at the peak first, then most bytes
  std::uint64_t other_rows = 0;                     ///< beyond the listed ones
  std::uint64_t other_peak_bytes = 0;
};

struct PatternsDevice {
  DeviceSummary totals;
  LifetimeUsage held[kLifetimes];  ///< at the peak, by Lifetime; the sum is totals.peak_recorded_bytes
  /// A block that is alive when the next one of its stack is allocated, one training step later, and
  /// freed soon after, in most steps: the variable that names it still holds the old value while the new one is
  /// made (`outputs = model(batch)`). As if freed when its training step ended, as `del` there does.
  /// None without training steps.
  std::optional<Pattern> kept_into_next_step;
  /// A block that is freed after an allocation and before the next on the device, and was allocated before: perhaps an
  /// input of the operation whose output is the allocation. As if freed right before that: operations in place.
  Pattern freed_after_allocation;
  /// What would lower the peak, from whose memory the blocks are.
  std::vector<Advice> advice;

  [[nodiscard]] std::uint64_t unrecorded_at_peak_bytes() const {
    return totals.peak_allocated_bytes - std::min(totals.peak_allocated_bytes, totals.peak_recorded_bytes);
  }
  /// What shares of the peak are of: where frees were lost, more is recorded than the allocator says.
  [[nodiscard]] std::uint64_t whole_peak_bytes() const {
    return std::max(totals.peak_allocated_bytes, totals.peak_recorded_bytes);
  }
  /// An upper bound of what a pattern costs.
  [[nodiscard]] std::uint64_t avoidable_peak_bytes(const Pattern& pattern) const {
    return totals.peak_allocated_bytes - std::min(totals.peak_allocated_bytes, pattern.reduced_peak_bytes);
  }
};

struct Patterns {
  RecordingInfo recording;
  TrainingSteps::Source steps_source = TrainingSteps::Source::none;
  std::uint64_t steps = 0;  ///< how many began
  std::vector<PatternsDevice> devices;
};

/// Fails only when the recording does not contain the requested device. Time n log n for n blocks.
Result<Patterns> analyze_patterns(const Store& store, Symbols& symbols, const PatternsOptions& options);

}  // namespace tidemark
