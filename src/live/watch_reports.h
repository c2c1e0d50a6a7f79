// What the commands say at their end that watch a machine for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/enum_names.h"
#include "live/machine_state.h"
#include "live/memory_growth.h"
#include "live/risk_notifier.h"

namespace tidemark {

enum class WatchEnd : std::uint8_t {
  duration = 0,       ///< the time was over
  interrupted = 1,    ///< by a signal
  process_ended = 2,  ///< the process that was watched
};
inline constexpr EnumName<WatchEnd> kWatchEndNames[] = {{WatchEnd::duration, "duration"},
                                                        {WatchEnd::interrupted, "interrupted"},
                                                        {WatchEnd::process_ended, "process_ended"}};
[[nodiscard]] constexpr std::string_view name_of(WatchEnd value) {
  return name_in(kWatchEndNames, value);
}

struct WatchRun {
  MachineState state;  ///< at the end
  double interval_seconds = 1;
  std::optional<std::int64_t> pid;
  WatchEnd end = WatchEnd::duration;
};

struct ProfileReport : WatchRun {};

struct OomReport : WatchRun {
  double threshold_percent = 85;
  std::vector<RiskChange> changes;    ///< the latest ones
  std::uint64_t earlier_changes = 0;  ///< before those
};

struct LeakReport : WatchRun {
  double threshold_bytes_per_minute = 0;
  std::vector<MemoryGrowth> growths;
  bool tracking = false;  ///< was asked for
};

struct FragmentReport : WatchRun {};

}  // namespace tidemark
