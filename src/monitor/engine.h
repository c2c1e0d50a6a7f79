// The engine that watches a machine. It takes readings of its devices, processes and host, follows recordings in
// progress, and keeps steps, peaks, forecasts, changes of risk and growth. All its users drive it the same way: the
// commands, the Python and C++ monitors, the terminal program, and monitors inside a program.
//
//   MonitorEngine engine({.machine = {.interval = 100ms}});
//   engine.start();
//   while (running) {
//     wait_until(engine.next_tick());      // or a key, or a signal
//     for (const MonitorEvent& event : engine.tick()) handle(event);
//     show(engine.state());
//   }
//   print(to_text(engine.profile(), terminal));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "monitor/monitor.h"
#include "monitor/recordings_watch.h"
#include "monitor/risk_notifier.h"
#include "monitor/watch_reports.h"

namespace tidemark {

/// Enough of a recording to find its training steps: at most some 16 MiB.
inline constexpr SlidingWindow::Limits kStepsWindow = {
    .length = std::chrono::minutes(10), .events = 200'000, .steps = 32};
/// The window that endless monitors keep for reports that need events.
inline constexpr SlidingWindow::Limits kReportWindow = {.length = std::chrono::minutes(10)};

struct EngineOptions {
  MonitorOptions machine = {};  ///< devices to watch, interval, thresholds of the forecast
  bool follow = true;           ///< follow recordings in progress; without them there are no steps and no true peaks
  SlidingWindow::Limits window = kStepsWindow;                   ///< kept events of each recording
  std::size_t max_recordings = RecordingsWatch::kMaxRecordings;  ///< at a time
  bool owners = false;                                           ///< keep RecordedProcess::owners up to date
  bool objects = false;  ///< ask recorded Python programs which storages grow; leak() may wait 30 s for them
  bool endless = false;  ///< for monitoring over weeks: forget recordings that have ended
  double leak_bytes_per_minute = 10.0 * kMiB;  ///< slower growth is no leak
  bool tracking = false;                       ///< leak() also reports which stacks grow
};

/// The names of these options in an interface, for messages about them.
struct OptionNames {
  std::string interval = "interval_seconds";
  std::string threshold = "threshold_percent";
  std::string leak_threshold = "threshold_mb_per_minute";
};

/// `seconds` as the time between two samples: from 10 ms to an hour. The error names the option.
[[nodiscard]] Result<std::chrono::nanoseconds> sampling_interval(double seconds, std::string_view name);
/// Checks the options. All interfaces call this, so that they have the same limits.
[[nodiscard]] Result<void> check(const EngineOptions& options, const OptionNames& names = {});
/// An error, as a sentence, if a chosen device does not exist; std::nullopt: all exist, or it is not known yet.
/// `option`: the option that chose it; empty: none.
[[nodiscard]] std::optional<Error> missing_device(const MachineState& state, std::string_view option = "");

enum class MonitorEventKind : std::uint8_t {
  first_readings,    ///< the host and every device have answered, or will not; once
  device_missing,    ///< a chosen device does not exist; once
  process_ended,     ///< the process of WatchedChoice::pid; once
  risk_changed,      ///< see `risk`
  recording_found,   ///< `recording` is followed from now on
  recording_ended,   ///< its program or its recorder has ended; no more events follow
  recording_failed,  ///< it cannot be read any further: the reason is in `text`
  incident,          ///< see `incident`
};

struct MonitorEvent {
  MonitorEventKind kind = MonitorEventKind::first_readings;
  std::uint64_t time_ns = 0;                    ///< as in MachineState
  std::string text = {};                        ///< device_missing: the choice; recording_failed: a sentence
  std::optional<RiskChange> risk = {};          ///< for risk_changed
  std::optional<LiveRecording> recording = {};  ///< for events of recordings
  std::optional<RecordedIncident> incident = {};
};

/// The state of an engine after a tick, for screens and for clusters.
struct MonitorSnapshot {
  MachineState state;
  std::vector<RecordedProcess> recorded;
};

/// Used by one thread at a time. No call waits for a driver or a recorder, except leak() with EngineOptions::objects; a
/// tick reads recordings for at most some 50 ms. Memory is bounded. MonitorThread allows use by several threads.
class MonitorEngine {
 public:
  using Clock = std::chrono::steady_clock;

  /// `options` must pass check().
  explicit MonitorEngine(const EngineOptions& options);
  MonitorEngine(const MonitorEngine&) = delete;
  MonitorEngine& operator=(const MonitorEngine&) = delete;

  /// Starts readings, on a thread that first loads the drivers.
  void start();
  /// One tick: takes new readings, follows recordings, assesses risks if due. Returns the events since the last tick;
  /// they are valid until the next call of tick() or assess().
  const std::vector<MonitorEvent>& tick();
  /// When the next tick is due: at once while recordings lag behind, soon while waiting for first readings, else by the
  /// interval.
  [[nodiscard]] Clock::time_point next_tick() const;
  /// Assesses all risks now. Returns the changes, as tick() does.
  const std::vector<MonitorEvent>& assess();
  /// The events of the latest tick() or assess(); reports call assess() too.
  [[nodiscard]] const std::vector<MonitorEvent>& events() const { return events_; }

  /// At the latest tick; references into it are valid until the next one.
  [[nodiscard]] const MachineState& state() const { return machine_ ? machine_->state() : last_; }
  [[nodiscard]] std::vector<RecordedProcess> recorded() const { return recordings_.processes(); }
  /// For analyses of the kept windows of recordings.
  [[nodiscard]] const RecordingsWatch& recordings() const { return recordings_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  /// See RecordingsWatch.
  Result<void> ask_for_dump(std::int64_t pid, std::string_view request) {
    return recordings_.ask_for_dump(pid, request);
  }
  /// Changes of risk dropped because listeners of risk_changed() took too long.
  [[nodiscard]] std::uint64_t dropped_changes() const { return machine_ ? machine_->dropped_changes() : dropped_; }

  /// `listener` is called on a thread of its own, from now on.
  void add_listener(RiskListener listener);

  /// Why watching ended; not_yet while it goes on. tick() detects the end of the watched process; callers set other
  /// reasons.
  [[nodiscard]] WatchEnd end() const { return end_; }
  void set_end(WatchEnd end) { end_ = end; }
  /// Assesses all risks a last time and stops taking readings; reports can still be made. The destructor of the
  /// returned object waits for a driver and for listeners, at most a few seconds.
  [[nodiscard]] std::unique_ptr<MachineMonitor> finish();

  // Reports since the start. They first update risks, steps and growth.
  [[nodiscard]] WatchRun run();
  [[nodiscard]] ProfileReport profile();
  [[nodiscard]] OomReport oom();
  [[nodiscard]] LeakReport leak();
  [[nodiscard]] FragmentReport fragment();

 private:
  struct SeenRecording {
    LiveRecording recording;
    bool goes_on = true;
    bool present = true;  // whether it is in the latest list
  };

  void follow();
  void add_changes();
  void add_event(MonitorEventKind kind, std::string text = {});
  void read_recordings();
  void sample_machine();

  EngineOptions options_;
  std::unique_ptr<MachineMonitor> machine_;  // null after finish()
  MachineState last_;                        // after finish()
  std::uint64_t dropped_ = 0;                // after finish()
  RecordingsWatch recordings_;
  KeptChanges kept_;
  std::vector<MonitorEvent> events_;
  std::vector<SeenRecording> seen_;
  WatchEnd end_ = WatchEnd::not_yet;
  bool has_read_all_ = false;
  bool has_missed_device_ = false;
  Clock::time_point began_;
  Clock::time_point ticked_;
};

}  // namespace tidemark
