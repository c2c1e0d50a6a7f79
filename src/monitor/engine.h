// The engine that watches a machine. It takes readings of its devices, processes and host, follows what is recorded
// meanwhile, and keeps steps, peaks, forecasts, changes of risk and what grows. Every face drives it the same way: the
// commands, the Python and C++ monitors, the terminal program, and what a program runs inside itself.
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

/// Enough of a recording to find its training steps in: some 16 MiB at most.
inline constexpr SlidingWindow::Limits kStepsWindow = {
    .length = std::chrono::minutes(10), .events = 200'000, .steps = 32};
/// What monitors without an end keep for reports that need the events themselves.
inline constexpr SlidingWindow::Limits kReportWindow = {.length = std::chrono::minutes(10)};

struct EngineOptions {
  MonitorOptions machine = {};  ///< what is watched and how often; thresholds of the forecast
  bool follow = true;           ///< follows what is recorded meanwhile; without it there are no steps and no true peaks
  SlidingWindow::Limits window = kStepsWindow;                   ///< what is kept of each recording
  std::size_t max_recordings = RecordingsWatch::kMaxRecordings;  ///< at a time
  bool owners = false;                                           ///< RecordedProcess::owners are kept up to date
  bool objects = false;  ///< recorded Python programs are asked which storages grow; leak() may wait for them for 30 s
  bool endless = false;  ///< for those who watch for weeks: recordings that have ended are forgotten
  double leak_bytes_per_minute = 10.0 * kMiB;  ///< slower growth is no leak
  bool tracking = false;                       ///< leak() also says which stacks grow
};

/// What a face calls these options, for sentences about them.
struct OptionNames {
  std::string interval = "interval_seconds";
  std::string threshold = "threshold_percent";
  std::string leak_threshold = "threshold_mb_per_minute";
};

/// `seconds` as the time between two samples: from 10 ms to an hour. The error names the option.
[[nodiscard]] Result<std::chrono::nanoseconds> sampling_interval(double seconds, std::string_view name);
/// Whether an engine can do that. Every face asks this, so that all have the same limits.
[[nodiscard]] Result<void> check(const EngineOptions& options, const OptionNames& names = {});
/// The error of a chosen device that is not there, as a sentence; none: all are there, or it is not known yet.
/// `option`: by which it was chosen; empty: by no option of a command.
[[nodiscard]] std::optional<Error> missing_device(const MachineState& state, std::string_view option = "");

enum class MonitorEventKind : std::uint8_t {
  first_readings,    ///< the host and every device have answered, or will not; once
  device_missing,    ///< a chosen device is not there; once
  process_ended,     ///< the process of WatchedChoice::pid; once
  risk_changed,      ///< `risk` says how
  recording_found,   ///< `recording` is followed from now on
  recording_ended,   ///< its program or its recorder has ended; nothing more comes of it
  recording_failed,  ///< it cannot be read any further: `text` says why
};

struct MonitorEvent {
  MonitorEventKind kind = MonitorEventKind::first_readings;
  std::uint64_t time_ns = 0;                    ///< as in MachineState
  std::string text = {};                        ///< of device_missing: the choice; of recording_failed: a sentence
  std::optional<RiskChange> risk = {};          ///< of risk_changed
  std::optional<LiveRecording> recording = {};  ///< of events of recordings
};

/// What an engine knew after one of its turns: what screens show and clusters send.
struct MonitorSnapshot {
  MachineState state;
  std::vector<RecordedProcess> recorded;
};

/// Used by one thread at a time. No call waits for a driver or a recorder, except leak() of EngineOptions::objects; a
/// tick reads recordings for some 50 ms at most. Memory is bounded. For use by several threads there is MonitorThread.
class MonitorEngine {
 public:
  using Clock = std::chrono::steady_clock;

  /// Options are those that check() accepts.
  explicit MonitorEngine(const EngineOptions& options);
  MonitorEngine(const MonitorEngine&) = delete;
  MonitorEngine& operator=(const MonitorEngine&) = delete;

  /// Begins to take readings, on a thread that loads drivers first.
  void start();
  /// One turn: takes what was read, follows recordings, assesses risks where that is due. Returns what happened since
  /// the last turn; the events hold until the next call of tick() or assess().
  const std::vector<MonitorEvent>& tick();
  /// When the next turn is due: at once while recordings lag behind, soon while first answers may come, else by the
  /// interval.
  [[nodiscard]] Clock::time_point next_tick() const;
  /// Assesses all risks now. Returns the changes, as tick() does.
  const std::vector<MonitorEvent>& assess();
  /// What the latest tick() or assess() returned; reports assess too.
  [[nodiscard]] const std::vector<MonitorEvent>& events() const { return events_; }

  /// As of the latest turn; references into it hold until the next one.
  [[nodiscard]] const MachineState& state() const { return machine_ ? machine_->state() : last_; }
  [[nodiscard]] std::vector<RecordedProcess> recorded() const { return recordings_.processes(); }
  /// For analyses of what is kept of recordings.
  [[nodiscard]] const RecordingsWatch& recordings() const { return recordings_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  /// Changes of risk that listeners of risk_changed() were not told of, because they took too long.
  [[nodiscard]] std::uint64_t dropped_changes() const { return machine_ ? machine_->dropped_changes() : dropped_; }

  /// Called on a thread of their own, from now on.
  void add_listener(RiskListener listener);

  /// Why it has ended; not_yet while it goes on. The end of the watched process is found by tick(), others are told.
  [[nodiscard]] WatchEnd end() const { return end_; }
  void set_end(WatchEnd end) { end_ = end; }
  /// Assesses all risks a last time and takes no more readings; reports can still be made. What is returned waits, when
  /// it is destroyed, for a driver and for listeners, a few seconds at most.
  [[nodiscard]] std::unique_ptr<MachineMonitor> finish();

  // What was seen since the start. Risks, steps and what grows are brought up to date first.
  [[nodiscard]] WatchRun run();
  [[nodiscard]] ProfileReport profile();
  [[nodiscard]] OomReport oom();
  [[nodiscard]] LeakReport leak();
  [[nodiscard]] FragmentReport fragment();

 private:
  struct SeenRecording {
    LiveRecording recording;
    bool goes_on = true;
    bool present = true;  // in the list of the latest turn
  };

  void follow();
  void add_changes();
  void add_event(MonitorEventKind kind, std::string text = {});
  void read_recordings();
  void sample_machine();

  EngineOptions options_;
  std::unique_ptr<MachineMonitor> machine_;  // null after finish()
  MachineState last_;                        // after finish()
  std::uint64_t dropped_ = 0;                // likewise
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
