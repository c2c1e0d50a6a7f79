// Watches a machine: reads its devices and its host repeatedly, and keeps the readings, with the risks.
//
//   MachineMonitor monitor({.interval = 100ms});
//   monitor.start();
//   while (running) {
//     wait();                              // for the screen's next picture, a key, a signal
//     monitor.update();                    // takes new readings; never waits for a driver
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

/// Readings from another source instead of this machine: a script, or a machine with an agent that sends them. Actions
/// paced by the clock are done at every update, so that the same readings give the same state.
struct ScriptedReadings {
  /// The readings since the last call, oldest first; DevicesFound comes first of all.
  std::function<std::vector<Reading>()> collect;
  /// The time now, in ticks of the readings, which are nanoseconds.
  std::function<std::uint64_t()> now;
};

struct MonitorOptions {
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
  WatchedChoice choice = {};
  ForecastOptions forecast = {};
  SourcePlaces places = {};
  std::function<std::vector<OpenedSource>()> open_sources = {};  ///< if devices do not come from `places`
  std::optional<ScriptedReadings> scripted = {};                 ///< std::nullopt: this machine is read
};

/// Used by one thread at a time; readings are taken on another one. Uses at most a two-hundredth of a core for each
/// kind of reading: with a slow driver, readings are less frequent than requested. Process lists are read at most once
/// a second. Memory is bounded.
class MachineMonitor {
 public:
  explicit MachineMonitor(const MonitorOptions& options);
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  /// Starts reading. Drivers' libraries are loaded first, which may take seconds: until then the state has no devices.
  void start();

  /// Takes the readings since the last call, and assesses the risks if due. Never waits. True if there were readings.
  bool update();
  /// Steps at the next readings, so that a forecast can give time in training steps; from RecordingsWatch.
  void set_steps(std::vector<ProcessSteps> steps) { builder_.state().steps = std::move(steps); }
  /// Peaks of devices between the latest readings; from RecordingsWatch.
  void add_peaks(const std::vector<RecordedPeak>& peaks);
  /// Assesses the risks now: before a report.
  void assess();
  /// At the latest update; references into it are valid until the next one.
  [[nodiscard]] const MachineState& state() const { return builder_.state(); }
  /// Changes of risk found by the latest update() or assess(); listeners receive them as well.
  [[nodiscard]] const std::vector<RiskChange>& changes() const { return changes_; }

  void add_listener(RiskListener listener) { notifier_.add(std::move(listener)); }
  /// Changes dropped because listeners took too long.
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
