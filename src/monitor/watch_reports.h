// What the commands say at their end that watch a machine for a while.
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
  process_ended = 2,  ///< the process that was watched
  stopped = 3,        ///< the program that watched asked for it
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
  std::vector<RecordedProcess> recorded;  ///< processes that were being recorded meanwhile

  /// 1 - allocated / reserved of a device on average, of the recorded processes on it; none without any.
  [[nodiscard]] std::optional<double> unused_share(const std::string& device) const;
};

/// What grows from step to step in a recorded process, since it is followed.
struct GrowingSource {
  Device device;
  NamedStack stack;  ///< no frames: not known
  LiveGrowth growth;
};
/// Leaking sources of one device put together by the module that allocated them.
struct GrowingModule {
  Device device;
  std::optional<std::string> module;  ///< none: outside of modules, or the recording does not know
  double bytes_per_minute = 0;
  std::optional<double> bytes_per_step;  ///< none: not known
  std::uint64_t held_bytes = 0;
};

/// Storages that a Python program has since it was first asked, of one kind of owner; of those that it was asked about.
struct GrowingType {
  std::string kind;  ///< "tensor", "saved tensor"
  std::string type;  ///< "Tensor"; empty: not known
  std::uint64_t storages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t native = 0;         ///< storages without a chain, as HeldStorage has it
  std::vector<std::string> chains;  ///< samples, of different storages
};

/// Of what was recorded last, by position in WatchRun::recorded: the leaks of the last part, block by block, and what
/// grew at all steps that were seen.
struct RecordedLeaks {
  std::size_t process = 0;
  Leaks leaks;
  std::vector<GrowingSource> sources;   ///< leaks, fastest first; the first ones
  std::size_t other_sources = 0;        ///< beyond those
  std::vector<GrowingModule> modules;   ///< of all sources; fastest first
  std::optional<ObjectAnswer> objects;  ///< what the program itself says
  std::string objects_unknown;          ///< why it says nothing: a clause
  std::vector<GrowingType> types;       ///< of `objects`; most bytes first
};
struct RecordedFragmentation {
  std::size_t process = 0;
  Fragmentation fragmentation;
};

/// `recordings` is what the run's `recorded` are of. Those that could not be read, or hold nothing, are left out.
[[nodiscard]] std::vector<RecordedLeaks> recorded_leaks(const RecordingsWatch& recordings);
[[nodiscard]] std::vector<RecordedFragmentation> recorded_fragmentation(const RecordingsWatch& recordings);

/// A moment that somebody marked.
struct WatchMark {
  std::uint64_t time_ns = 0;  ///< as in MachineState
  std::string name;
};

struct ProfileReport : WatchRun {
  bool has_risks = false;                            ///< says the risks of devices too
  std::optional<std::vector<WatchMark>> marks = {};  ///< of a session of the terminal program; none: it is none
};

struct OomReport : WatchRun {
  double threshold_percent = 85;
  std::vector<RiskChange> changes;    ///< the latest ones
  std::uint64_t earlier_changes = 0;  ///< before those
};

struct LeakReport : WatchRun {
  double threshold_bytes_per_minute = 0;
  std::vector<MemoryGrowth> growths;
  bool tracking = false;                ///< was asked for
  std::vector<RecordedLeaks> by_stack;  ///< where it was
};

struct FragmentReport : WatchRun {
  std::vector<RecordedFragmentation> of_recorded;
};

}  // namespace tidemark
