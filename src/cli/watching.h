// What the commands share that watch a machine for a while: their options, the loop, and where reports go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/monitor_outputs.h"
#include "monitor/monitor.h"
#include "monitor/recordings_watch.h"
#include "monitor/watch_reports.h"
#include "report/common/terminal.h"

namespace tidemark::cli {

struct WatchOptions {
  double duration_seconds = 60;
  double interval_seconds = 1;
  std::vector<std::string> devices;
  std::string pid;
  std::string output;  ///< JSON; empty: none
  bool plot = false;   ///< a PNG beside `output`
  std::string format = "text";
  OutputOptions outputs;
};

/// Which of the options a command has besides --duration, --devices, --pid, --interval, --output and --format.
struct WatchArguments {
  bool plot = false;
};
/// Those of what is watched: --interval and --devices.
void add_watched(CommandLine& app, WatchOptions& options);
/// The same, and --pid.
void add_choice(CommandLine& app, WatchOptions& options);
void add_watching(CommandLine& app, WatchOptions& options, const WatchArguments& arguments);

/// What a command adds to the loop.
struct WatchHooks {
  ForecastOptions forecast = {};
  bool endless = false;                                       ///< until a signal
  std::function<void(const MachineMonitor&)> on_update = {};  ///< after each update
  std::vector<RiskListener> listeners = {};                   ///< of changes of risk
  /// What is recorded meanwhile is followed, and so much of it kept for `at_end`; none: nothing is kept.
  bool follow = false;
  std::optional<SlidingWindow::Limits> window = {};
  bool objects = false;                                     ///< their programs are asked which storages grow
  std::function<void(const RecordingsWatch&)> at_end = {};  ///< of what was followed
};

/// Of recordings, as much as training steps are found in.
inline constexpr SlidingWindow::Limits kStepsWindow = {
    .length = std::chrono::minutes(10), .events = 200'000, .steps = 32};
/// As much as is watched.
[[nodiscard]] SlidingWindow::Limits window_of(const WatchOptions& options);

/// What to watch; an error for what cannot be watched.
Result<MonitorOptions> monitor_options(const WatchOptions& options, const WatchHooks& hooks = {});

/// Watches until the time is over, the process has ended, or SIGINT, SIGTERM or SIGHUP comes, and hands on what it sees
/// as `options.outputs` say. Progress on stderr, where that is a terminal. Fails, before it begins, for what cannot be
/// watched or written.
Result<WatchRun> watch(const WatchOptions& options, const WatchHooks& hooks = {});

/// Ways to say one report.
struct WrittenReport {
  std::function<std::string(const Terminal&)> text;
  std::function<std::string()> json;
};
/// Prints it, and writes the files that were asked for. The exit code.
int write_reports(const WatchOptions& options, const MachineState& state, const WrittenReport& report);

/// The same for the types that have to_text() and to_json().
template <typename Report>
int write_reports(const WatchOptions& options, const Report& report) {
  return write_reports(
      options, report.state,
      {[&](const Terminal& terminal) { return to_text(report, terminal); }, [&] { return to_json(report); }});
}

/// "Stopped by Ctrl-C …", "Examples:" and these.
[[nodiscard]] std::string watching_footer(const std::string& about, const std::string& examples);

}  // namespace tidemark::cli
