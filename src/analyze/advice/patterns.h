// Causes of a high peak: memory at the peak by lifetime, blocks kept alive into the next step, blocks freed right after
// another allocation and, if the owners of blocks are known, advice.
//
// DrGPUM (Lin et al., ASPLOS 2023) names more patterns. Early allocation, late deallocation, unused allocations,
// idleness and dead writes need the times of reads and writes, which recordings and snapshots do not contain. The
// savings here are therefore bounds: exact by replay, if the program does not need the blocks during the removed times.
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
  BlockFilter filter = {};                   ///< selects blocks; advice covers all blocks
  const Attribution* attribution = nullptr;  ///< of this store; null: no advice
};

/// How long a block lives. The first that applies.
enum class Lifetime : std::uint8_t {
  never_freed,
  temporary,     ///< freed after at most one other allocation on its device, as in analyze_temporary()
  across_steps,  ///< freed in a later training step than it was allocated in
  within_step,
  freed,  ///< freed; no training steps to distinguish further
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

/// Memory of the blocks of one lifetime at the peak.
struct LifetimeUsage {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// The blocks of one stack in a pattern.
struct PatternRow {
  NamedStack stack;
  std::uint64_t peak_bytes = 0;   ///< bytes alive at the device's peak which the change would free
  std::uint64_t peak_blocks = 0;  ///< number of these blocks
  std::uint64_t count = 0;        ///< in the whole recording
  std::uint64_t bytes = 0;        ///< the sum of their sizes
};

struct Pattern {
  std::uint64_t count = 0;
  std::uint64_t peak_bytes = 0;  ///< of the blocks alive at the device's peak
  /// The peak if each of these blocks had been freed earlier (see PatternsDevice), with everything else unchanged.
  std::uint64_t reduced_peak_bytes = 0;
  std::optional<std::uint64_t> reduced_peak_at_ns;  ///< first time of that peak; nullopt if nothing was allocated
  std::vector<PatternRow> rows;                     ///< most bytes at the peak first, then most bytes
  std::uint64_t other_rows = 0;                     ///< beyond the listed ones
  std::uint64_t other_peak_bytes = 0;
};

struct PatternsDevice {
  DeviceSummary totals;
  LifetimeUsage held[kLifetimes];  ///< at the peak, by Lifetime; the sum is totals.peak_recorded_bytes
  /// Blocks that are alive when the next block of their stack is allocated, one training step later, and freed soon
  /// after, in most steps: the variable still holds the old value while the new one is computed (`outputs =
  /// model(batch)`). The reduced peak frees each at the end of its training step, as `del` would. nullopt without
  /// training steps.
  std::optional<Pattern> kept_into_next_step;
  /// Blocks that are freed after an allocation and before the next on the device, and were allocated before both:
  /// perhaps the input of an operation and its output. The reduced peak frees each right before that allocation:
  /// in-place operations.
  Pattern freed_after_allocation;
  /// Advice on lowering the peak, from the owners of the blocks.
  std::vector<Advice> advice;

  [[nodiscard]] std::uint64_t unrecorded_at_peak_bytes() const {
    return totals.peak_allocated_bytes - std::min(totals.peak_allocated_bytes, totals.peak_recorded_bytes);
  }
  /// Total for shares of the peak: if free events were lost, more bytes are recorded than the allocator reports.
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
