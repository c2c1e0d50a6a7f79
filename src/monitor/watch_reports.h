// Final reports of the commands that watch a machine for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/fragmentation/fragmentation.h"
#include "analyze/leaks/leaks.h"
#include "base/enum_names.h"
#include "monitor/machine_state.h"
#include "monitor/memory_growth.h"
#include "monitor/recordings_watch.h"
#include "monitor/risk_notifier.h"

namespace tidemark {

enum class WatchEnd : std::uint8_t {
  duration = 0,       ///< the time was over
  interrupted = 1,    ///< by a signal
  process_ended = 2,  ///< the watched process has ended
  stopped = 3,        ///< requested by the watching program
  not_yet = 4,        ///< watching goes on
};
inline constexpr EnumName<WatchEnd> kWatchEndNames[] = {{WatchEnd::duration, "duration"},
                                                        {WatchEnd::interrupted, "interrupted"},
                                                        {WatchEnd::process_ended, "process_ended"},
                                                        {WatchEnd::stopped, "stopped"},
                                                        {WatchEnd::not_yet, "not_yet"}};
[[nodiscard]] constexpr std::string_view name_of(WatchEnd value) {
  return name_in(kWatchEndNames, value);
}

struct WatchRun {
  MachineState state;  ///< at the end
  double interval_seconds = 1;
  std::optional<std::int64_t> pid;
  WatchEnd end = WatchEnd::duration;
  std::vector<RecordedProcess> recorded;  ///< processes that were recorded while watching

  /// Average of 1 - allocated / reserved on a device, over the recorded processes on it; std::nullopt without any.
  [[nodiscard]] std::optional<double> unused_share(const std::string& device) const;
};

/// Memory that grows from step to step in a recorded process, since it is followed.
struct GrowingSource {
  Device device;
  NamedStack stack;  ///< empty if unknown
  LiveGrowth growth;
};
/// Leaking sources of one device, grouped by the module that allocated them.
struct GrowingModule {
  Device device;
  std::optional<std::string> module;  ///< std::nullopt: outside of modules, or not recorded
  double bytes_per_minute = 0;
  std::optional<double> bytes_per_step;  ///< std::nullopt: unknown
  std::uint64_t held_bytes = 0;
};

/// New storages that one object of the program refers to.
struct GrowingHolder {
  std::string name;   ///< holder_of() the chain: "__main__.losses"
  std::string chain;  ///< to one of them: "__main__.losses[12]"
  std::uint64_t storages = 0;
  std::uint64_t bytes = 0;
};

/// New storages of a Python program since the first request, for one kind of owner; of the storages in its answer.
struct GrowingType {
  std::string kind;  ///< "tensor", "saved tensor"
  std::string type;  ///< "Tensor"; empty: unknown
  std::uint64_t storages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t native = 0;            ///< storages without a chain, see HeldStorage
  std::vector<GrowingHolder> holders;  ///< most bytes first, the first ones
  std::size_t other_holders = 0;       ///< not in `holders`
};

/// For the most recent part of a recording, by position in WatchRun::recorded: its leaks, block by block, and the
/// memory that grew over all steps seen.
struct RecordedLeaks {
  std::size_t process = 0;
  Leaks leaks;
  std::vector<GrowingSource> sources;   ///< leaks, fastest first; the first ones
  std::size_t other_sources = 0;        ///< not in `sources`
  std::vector<GrowingModule> modules;   ///< of all sources; fastest first
  std::optional<ObjectAnswer> objects;  ///< the program's own answer
  std::string objects_unknown;          ///< why there is no answer: a clause
  std::vector<GrowingType> types;       ///< of `objects`; most bytes first
};
struct RecordedFragmentation {
  std::size_t process = 0;
  Fragmentation fragmentation;
};

/// `recordings` corresponds to the run's `recorded`. Recordings that could not be read, or are empty, are left out.
[[nodiscard]] std::vector<RecordedLeaks> recorded_leaks(const RecordingsWatch& recordings);
[[nodiscard]] std::vector<RecordedFragmentation> recorded_fragmentation(const RecordingsWatch& recordings);

/// A moment marked by the user.
struct WatchMark {
  std::uint64_t time_ns = 0;  ///< as in MachineState
  std::string name;
};

struct ProfileReport : WatchRun {
  bool has_risks = false;                            ///< also has the risks of devices
  std::optional<std::vector<WatchMark>> marks = {};  ///< of a session of the terminal program; std::nullopt: not a
                                                     ///< session
};

struct OomReport : WatchRun {
  double threshold_percent = 85;
  std::vector<RiskChange> changes;    ///< the latest ones
  std::uint64_t earlier_changes = 0;  ///< before these
};

struct LeakReport : WatchRun {
  double threshold_bytes_per_minute = 0;
  std::vector<MemoryGrowth> growths;
  bool tracking = false;                ///< whether it was requested
  std::vector<RecordedLeaks> by_stack;  ///< if tracking was requested
};

struct FragmentReport : WatchRun {
  std::vector<RecordedFragmentation> of_recorded;
};

}  // namespace tidemark
