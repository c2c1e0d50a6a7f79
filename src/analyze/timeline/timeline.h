// Allocated, active and reserved bytes over time, memory of libraries besides them, and the host's memory: reduced to a
// number of points that can be drawn, keeping all extremes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/groups.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "analyze/timeline/host_timeline.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

struct TimelineOptions {
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  std::size_t points = 2000;          ///< maximum number for each device; at least 8
  /// If it selects some blocks, the points cover only these: reserved memory is unknown.
  BlockFilter filter = {};
};

/// State of a device from `time_ns` until the next point.
struct TimelinePoint {
  std::uint64_t time_ns = 0;
  std::uint64_t allocated_bytes = 0;
  std::optional<std::uint64_t> reserved_bytes;
  std::optional<std::uint64_t> active_bytes;       ///< nullopt if unknown (recordings)
  std::optional<std::uint64_t> driver_bytes = {};  ///< as of DriverBytes; nullopt if no calls were recorded
  std::uint64_t change_count = 0;                  ///< number of Store::live_changes up to then
};

/// Allocated memory at each point of a series, by call site or owner. The sum is the allocated memory, or more if free
/// events were lost.
struct TimelineLayers {
  struct Layer {
    NamedStack stack;
    BlockOwner owner;                  ///< replaces the stack if the layers are by owner
    std::vector<std::uint64_t> bytes;  ///< of each point
  };
  std::optional<OwnerKind> by;  ///< nullopt: by call site
  /// The largest ones at the device's peak, largest first; categories and phases: all, in their order.
  std::vector<Layer> layers;
  std::vector<std::uint64_t> other;       ///< of others
  std::vector<std::uint64_t> unrecorded;  ///< not in any recorded block
};

struct TimelineSeries {
  Device device;
  /// In order of time. Each of (points / 2n) equal stretches of the run keeps the minimum and maximum of those n values
  /// that are known (two to four: allocated, reserved, active, driver) at their exact times, so the highest point is
  /// the exact peak. All values of a point are of the same moment. The last one is at the end.
  std::vector<TimelinePoint> points;
  std::uint64_t peak_allocated_bytes = 0;
  std::optional<std::uint64_t> peak_allocated_at_ns;
  std::optional<std::uint64_t> peak_reserved_bytes;
  std::optional<std::uint64_t> peak_active_bytes;
  std::optional<std::uint64_t> peak_driver_bytes;
  std::optional<std::uint64_t> peak_driver_at_ns;  ///< its first time; nullopt if it is 0 or unknown
  std::optional<std::uint64_t> capacity_bytes;     ///< total memory of the GPU, as sampled; nullopt: unknown
  std::vector<TimelineLayers> splits;              ///< by add_call_sites() and add_owners()

  /// Whether memory was ever pending: freed by the program, but still used by another stream.
  [[nodiscard]] bool active_differs() const {
    return std::any_of(points.begin(), points.end(), [](const TimelinePoint& point) {
      return point.active_bytes && *point.active_bytes != point.allocated_bytes;
    });
  }
};

struct TimelineOutOfMemory {
  std::uint64_t time_ns = 0;
  std::uint64_t requested_bytes = 0;
  Device device;
};

/// A step of training, or several if there are more than can be listed.
struct TimelineStep {
  std::uint64_t number = 0;  ///< number of the first step, as in `leaks`
  std::uint64_t begin_ns = 0;
};

struct TimelinePhase {
  Phase phase = Phase::other;  ///< never that
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

/// Activity of the program over time: see find_bands().
struct TimelineBands {
  std::vector<TimelineStep> steps;  ///< in order of time; empty: unknown. The end of the last one is unknown
  std::optional<std::vector<TimelinePhase>> phases =
      std::vector<TimelinePhase>();  ///< in order of time; nullopt: too many to list
};

struct Timeline {
  RecordingInfo recording;
  TimelineBands bands;
  std::vector<TimelineSeries> series;  ///< one for each device
  std::vector<TimelineOutOfMemory> out_of_memory;
  std::vector<Pause> pauses;         ///< of recording, during which no change was seen
  std::optional<HostTimeline> host;  ///< of the whole process, for every device; nullopt if it was not sampled, or one
                                     ///< device was chosen
};

/// Fails only when the recording does not contain the requested device.
Result<Timeline> analyze_timeline(const Store& store, const Symbols& symbols, const TimelineOptions& options);

/// The bands of all devices and threads together; at most `most` of each. If there are more steps, every second, fifth,
/// tenth, ... is listed.
[[nodiscard]] TimelineBands find_bands(const Store& store, const Attribution& attribution, std::size_t most);

/// The stride at which `count` steps are listed: the least of 1, 2, 5, 10, 20, ... with which at most `most` are left.
[[nodiscard]] std::size_t step_stride(std::size_t count, std::size_t most);

/// The phase with the largest share of each of `cells` equal parts of the duration; nullopt if most of it is in no
/// phase. Empty if there are no phases, or more than cells.
[[nodiscard]] std::vector<std::optional<Phase>> phase_cells(const TimelineBands& bands, std::uint64_t duration_ns,
                                                            std::size_t cells);

inline constexpr std::size_t kMaxLayers = 8;  ///< number of layers with colours in plots, besides categories

/// Adds to TimelineSeries::splits of the timeline of this store, with at most `top` call sites for each device: the
/// largest at its peak. `filter` is the timeline's.
void add_call_sites(Timeline& timeline, const Store& store, Symbols& symbols, std::size_t top = kMaxLayers,
                    const BlockFilter& filter = {});

/// The same by owner: of categories and phases all.
void add_owners(Timeline& timeline, const Store& store, OwnerKind by, const OwnerGroups& groups,
                const BlockFilter& filter = {}, std::size_t top = kMaxLayers);

}  // namespace tidemark
