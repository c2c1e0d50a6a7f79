// How well the memory that the allocator holds is used: separate measures, each under its own name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/holders.h"
#include "analyze/common/moment.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/common/trend.h"
#include "analyze/fragmentation/segment_map.h"
#include "analyze/fragmentation/unused_memory.h"
#include "analyze/plan/simulation.h"
#include "base/enum_names.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

enum class FragmentationAdviceKind : std::uint8_t {
  empty_cache,          ///< torch.cuda.empty_cache() after a peak that did not come back
  expandable_segments,  ///< blocks of many sizes: segments that grow instead of ones that are too small
  search,               ///< no evidence for a single setting
  settings,             ///< settings with which a replay reserved less
};
inline constexpr EnumName<FragmentationAdviceKind> kFragmentationAdviceNames[] = {
    {FragmentationAdviceKind::empty_cache, "empty_cache"},
    {FragmentationAdviceKind::expandable_segments, "expandable_segments"},
    {FragmentationAdviceKind::search, "search"},
    {FragmentationAdviceKind::settings, "settings"}};
[[nodiscard]] constexpr std::string_view name_of(FragmentationAdviceKind kind) {
  return name_in(kFragmentationAdviceNames, kind);
}

/// Sizes are bytes.
struct FragmentationAdvice {
  FragmentationAdviceKind kind = FragmentationAdviceKind::search;
  std::uint64_t bytes = 0;     ///< UnusedMemory::idle: maximum saving; settings: saving of the replay
  std::uint64_t sizes = 0;     ///< expandable_segments: different ones of blocks of more than 1 MiB
  std::uint64_t blocks = 0;    ///< of more than 1 MiB
  std::uint64_t reserved = 0;  ///< settings: the peak of the replay with the recorded ones
  std::string settings = {};   ///< settings: as in PYTORCH_CUDA_ALLOC_CONF
};

/// Whether advice is justified: a tenth of the reserved memory is idle, or unused memory grows and will reach the limit
/// of the device.
[[nodiscard]] bool is_fragmented(const UnusedMemory& unused);

/// Empty if it is not fragmented. The most promising advice comes first. Settings that are known to be set are left
/// out.
[[nodiscard]] std::vector<FragmentationAdvice> find_fragmentation_advice(const Store& store, std::size_t device,
                                                                         const UnusedMemory& unused);

/// Replaces suggested settings by the results of a replay: the best settings if they save enough, else none. Does
/// nothing if the replay with the recorded settings does not reproduce the recorded run, to 5% of the peak reserved.
/// `device`: of the recording.
void cite_simulation(const Simulation& simulation, Device device, std::vector<FragmentationAdvice>& advice);

struct FragmentationOptions {
  Holders holders = {};               ///< of blocks that pin segments
  std::optional<Holders> categories;  ///< the same by category; nullopt: unknown
  Moment at;                          ///< of the map, the sizes and the pinning stacks
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t top = 10;               ///< segments and stacks to list; 0 = all
  std::size_t samples = 12;           ///< equidistant times over the recording, from begin_ns on
  std::uint64_t begin_ns =
      0;  ///< for a window (follow/sliding_window.h): of earlier blocks, only the survivors are known
};

/// A device at one time. Values that the source does not contain are nullopt.
struct FragmentationMeasures {
  std::uint64_t time_ns = 0;
  std::uint64_t allocated = 0;
  std::optional<std::uint64_t> reserved;
  std::optional<std::uint64_t> active;          ///< allocated and pending
  std::optional<std::uint64_t> rounding;        ///< allocated minus requested bytes
  std::optional<std::uint64_t> free;            ///< reserved and not active: cached by the allocator
  std::optional<std::uint64_t> free_blocks;     ///< number of free blocks
  std::optional<std::uint64_t> largest_free;    ///< the largest request that needs no memory from the driver
  std::optional<std::uint64_t> releasable;      ///< free, in segments that are free as a whole
  std::optional<std::uint64_t> inactive_split;  ///< free, in ordinary segments that are not free as a whole

  /// 1 - allocated / reserved. nullopt also if the two contradict each other.
  [[nodiscard]] std::optional<double> unused_share() const;
  /// 1 - largest_free / free: 0 when all free memory is one block.
  [[nodiscard]] std::optional<double> external_share() const;
};

/// Blocks and free blocks with sizes from `from` to below twice that; the first class starts at 0.
struct SizeClass {
  std::uint64_t from = 0;
  std::uint64_t allocations = 0;  ///< in the whole recording
  std::uint64_t live_blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t free_blocks = 0;
  std::uint64_t free_bytes = 0;
};

/// A stack, or owner, with blocks that prevent segments from being released.
struct PinningStack {
  NamedStack stack;
  std::uint64_t segments = 0;           ///< with free memory in them
  std::uint64_t blocks = 0;             ///< of the stack in these segments
  std::uint64_t bytes = 0;              ///< of these blocks
  std::uint64_t pinned_free_bytes = 0;  ///< free memory of segments that only blocks of this stack hold
};

struct FragmentationDevice {
  DeviceSummary totals;
  bool knows_segments = false;
  std::optional<FragmentationMeasures> at_peak_allocated;
  std::optional<FragmentationMeasures> at_peak_reserved;
  std::optional<FragmentationMeasures> at_moment;  ///< FragmentationOptions::at
  FragmentationMeasures at_end;
  std::vector<FragmentationMeasures> over_time;  ///< equally far apart, the last one at the end
  std::optional<ShareTrend> external_trend;      ///< of FragmentationMeasures::external_share over these times
  UnusedMemory unused;                           ///< pattern and trend of reserved memory that is in no tensor
  std::vector<FragmentationAdvice> advice;       ///< empty if there is no problem, or too little data
  std::vector<MapSegment> map;                   ///< at FragmentationOptions::at; all segments, in order of address
  std::vector<MapSegment> segments;              ///< segments with both blocks and free memory, most free memory first
  std::uint64_t other_segments = 0;              ///< beyond the listed ones
  std::uint64_t other_free_bytes = 0;
  std::uint64_t empty_segments = 0;   ///< at the moment; without blocks, FragmentationMeasures::releasable bytes
  std::vector<SizeClass> sizes;       ///< at the moment; empty classes are left out
  std::vector<PinningStack> pinning;  ///< at the moment; most pinned free bytes first
  std::uint64_t other_pinning = 0;    ///< beyond the listed ones
  std::vector<PinningStack> pinning_categories;  ///< all categories, ordered the same way

  /// 1 - peak active / peak reserved: the share that no order of the same blocks could reduce further.
  [[nodiscard]] std::optional<double> peak_share() const;
};

struct Fragmentation {
  RecordingInfo recording;
  std::vector<FragmentationDevice> devices;
  std::optional<Simulation> simulation;  ///< of other settings, if requested
};

/// Whether other settings may be worth a simulation: a tenth of some device's peak reserved was never active, or it
/// is_fragmented().
[[nodiscard]] bool wants_simulation(const Fragmentation& fragmentation);
/// Sets Fragmentation::simulation and updates the advice.
void cite_simulation(Simulation simulation, Fragmentation& fragmentation);

/// Fails only when the recording does not contain the requested device.
Result<Fragmentation> analyze_fragmentation(const Store& store, Symbols& symbols, const FragmentationOptions& options);

}  // namespace tidemark
