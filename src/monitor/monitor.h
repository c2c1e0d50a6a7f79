// Watches a machine: reads its devices and its host again and again, and keeps what was seen, with the risks.
//
//   MachineMonitor monitor({.interval = 100ms});
//   monitor.start();
//   while (running) {
//     wait();                              // for the screen's next picture, a key, a signal
//     monitor.update();                    // takes what was read meanwhile; never waits for a driver
//     show(monitor.state());
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/forecast/forecaster.h"
#include "collect/recorder/lanes/lane_reader.h"
#include "collect/recorder/sampling/sample_taker.h"
#include "monitor/machine_state.h"
#include "monitor/recorded_peaks.h"
#include "monitor/risk_notifier.h"
#include "monitor/risk_tracker.h"
#include "monitor/state_builder.h"

namespace tidemark {

/// Readings of elsewhere in place of this machine's own: of a script, or of a machine whose agent sends them. What is
/// paced by the clock is done at every update, so that the same readings give the same state.
struct ScriptedReadings {
  /// What was read since the last call, oldest first; DevicesFound comes first of all.
  std::function<std::vector<Reading>()> collect;
  /// The time now, in ticks of the readings, which are nanoseconds.
  std::function<std::uint64_t()> now;
};

struct MonitorOptions {
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  WatchedChoice choice = {};
  ForecastOptions forecast = {};
  SourcePlaces places = {};
  std::function<std::vector<OpenedSource>()> open_sources = {};  ///< where devices are not those of `places`
  std::optional<ScriptedReadings> scripted = {};                 ///< none: this machine is read
};

/// Used by one thread at a time; readings are taken on one of its own. Takes at most a two-hundredth
/// of a core for each kind of reading: where a driver takes longer, readings come less often than asked for. Process
/// lists are read once a second at most. Memory is bounded.
class MachineMonitor {
 public:
  explicit MachineMonitor(const MonitorOptions& options);
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  /// Starts reading. Drivers' libraries are loaded first, which may take seconds: until then the state has no devices.
  void start();

  /// Takes what was read since the last call, and assesses the risks where that is due. Never waits. True when there
  /// was something.
  bool update();
  /// What the next readings are taken at: so that a forecast can tell time in training steps. RecordingsWatch knows.
  void set_steps(std::vector<ProcessSteps> steps) { builder_.state().steps = std::move(steps); }
  /// What was used of devices between the latest readings, at most. RecordingsWatch knows.
  void add_peaks(const std::vector<RecordedPeak>& peaks);
  /// Assesses the risks now: before a report.
  void assess();
  /// As of the latest update; references into it hold until the next one.
  [[nodiscard]] const MachineState& state() const { return builder_.state(); }
  /// Changes of risk that the latest update() or assess() found; listeners are told of them as well.
  [[nodiscard]] const std::vector<RiskChange>& changes() const { return changes_; }

  void add_listener(RiskListener listener) { notifier_.add(std::move(listener)); }
  /// Changes that listeners were not told of, because they took too long.
  [[nodiscard]] std::uint64_t dropped_changes() const { return notifier_.dropped(); }

 private:
  std::optional<ScriptedReadings> scripted_;
  TickClock clock_;
  StateBuilder builder_;
  RiskTracker risks_;
  ProcessRisks process_risks_;
  RiskNotifier notifier_;
  std::vector<RiskChange> changes_;
  Sampler sampler_;
};

}  // namespace tidemark
