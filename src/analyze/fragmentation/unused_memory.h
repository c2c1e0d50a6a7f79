// Reserved memory that is in no tensor, over time: its pattern after the warm-up, and when it takes all remaining
// memory of the device.
//
// Within a step it rises and falls with the tensors. The minimum of each stretch of time counts: memory that stayed
// unused at the highest usage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/common/trend.h"
#include "analyze/forecast/forecaster.h"
#include "base/enum_names.h"
#include "store/store.h"

namespace tidemark {

/// How the least unused bytes go on. docs/commands/fragmentation.md has the conditions.
enum class UnusedPattern : std::uint8_t {
  unknown = 0,    ///< too few allocations and frees
  stable = 1,     ///< within 5% of the reserved memory since the latest change
  growing = 2,    ///< at a steady rate
  steps = 3,      ///< growing in steps
  sawtooth = 4,   ///< it repeats
  held_peak = 5,  ///< reserved for a peak of allocated memory that did not come back
  irregular = 6,  ///< no other pattern
};
inline constexpr EnumName<UnusedPattern> kUnusedPatternNames[] = {
    {UnusedPattern::unknown, "unknown"},    {UnusedPattern::stable, "stable"},
    {UnusedPattern::growing, "growing"},    {UnusedPattern::steps, "steps"},
    {UnusedPattern::sawtooth, "sawtooth"},  {UnusedPattern::held_peak, "held_peak"},
    {UnusedPattern::irregular, "irregular"}};
[[nodiscard]] constexpr std::string_view name_of(UnusedPattern pattern) {
  return name_in(kUnusedPatternNames, pattern);
}

/// One of the equal stretches of time that a recording is looked at in. Sizes are bytes.
struct UnusedCell {
  std::uint64_t end_ns = 0;
  std::uint64_t least = 0;  ///< reserved - allocated, when that was least
  std::uint64_t most_allocated = 0;
  std::uint64_t most_reserved = 0;
  std::uint64_t reserved = 0;  ///< at the end
  double share = 0;            ///< 1 - allocated / reserved, on average over its time
};

struct UnusedCells {
  std::uint64_t begin_ns = 0;
  std::uint64_t changes = 0;      ///< allocations and frees in the time looked at
  std::vector<UnusedCell> cells;  ///< empty if there are too few
};

inline constexpr std::size_t kFewestUnusedCells = 16;
inline constexpr std::size_t kMaxUnusedCells = 96;
/// Two for each cell.
inline constexpr std::uint64_t kFewestUnusedChanges = 2 * kFewestUnusedCells;

/// For a device, from its first reserved memory, not before `begin_ns`, to the end.
[[nodiscard]] UnusedCells unused_cells(const Store& store, std::size_t device, std::uint64_t begin_ns);

struct ByteTrend {
  Slope change;  ///< over the time, in bytes, with its 95% interval; no more than it went up and down
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  double least_change = 0;  ///< smaller changes are ignored: 1% of the reserved memory

  [[nodiscard]] bool rises() const { return change.rises() && change.value >= least_change; }
  [[nodiscard]] bool falls() const { return change.falls() && change.value <= -least_change; }
  [[nodiscard]] double seconds() const { return static_cast<double>(end_ns - begin_ns) / kNanosecondsPerSecond; }
};

/// One device. Sizes are bytes.
struct UnusedMemory {
  UnusedPattern pattern = UnusedPattern::unknown;
  std::uint64_t changes = 0;   ///< UnusedCells::changes
  std::uint64_t begin_ns = 0;  ///< the time looked at
  std::uint64_t end_ns = 0;
  // The following are unset if the pattern is unknown.
  std::uint64_t since_ns = 0;             ///< start of the pattern: earlier is warm-up, or another pattern
  std::uint64_t reserved = 0;             ///< at the end
  std::uint64_t idle_since_ns = 0;        ///< the same, or the latest change before the middle of the time if
                                          ///< `since_ns` is later
  std::uint64_t idle = 0;                 ///< unused bytes beyond the maximum allocated at any one time since then
  std::optional<ShareTrend> share_trend;  ///< of 1 - allocated / reserved
  std::optional<ByteTrend> trend;         ///< of the minimum of unused bytes; for a periodic pattern, of each period
  std::optional<double> period_seconds;   ///< sawtooth
  std::uint64_t peak_allocated = 0;       ///< held_peak: then, at
  std::uint64_t peak_at_ns = 0;
  std::uint64_t later_allocated = 0;  ///< held_peak: at most, since then
  // The forecast.
  std::optional<std::uint64_t> device_free;  ///< of the device at the end; nullopt: not sampled
  std::optional<Interval> seconds_to_limit;  ///< until unused memory reaches `device_free`; nullopt: never, or unknown

  [[nodiscard]] bool known() const { return pattern != UnusedPattern::unknown; }
  [[nodiscard]] bool grows() const { return pattern == UnusedPattern::growing || pattern == UnusedPattern::steps; }
  /// idle / reserved.
  [[nodiscard]] double idle_share() const {
    return reserved == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(reserved);
  }
};

[[nodiscard]] UnusedMemory describe_unused(const UnusedCells& cells, std::optional<std::uint64_t> device_free);

/// Free memory in the last sample of a recording: total minus memory reserved by the driver and used memory. nullopt if
/// the device was not sampled.
[[nodiscard]] std::optional<std::uint64_t> sampled_free_at_end(const Store& store, std::size_t device);

}  // namespace tidemark
