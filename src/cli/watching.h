// What the commands share that watch a machine for a while: their options, the loop, and where reports go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/monitor_outputs.h"
#include "monitor/engine.h"
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
  bool endless = false;                                                  ///< until a signal
  std::function<void(const std::vector<MonitorEvent>&)> on_events = {};  ///< after each turn of the engine
  std::function<void(MonitorEngine&)> at_end = {};                       ///< makes the report
};

/// As much of recordings as is watched.
[[nodiscard]] SlidingWindow::Limits window_of(const WatchOptions& options);

/// What to watch; an error for what cannot be watched.
Result<EngineOptions> engine_options(const WatchOptions& options);

/// Watches until the time is over, the process has ended, or SIGINT, SIGTERM or SIGHUP comes, and hands on what it sees
/// as `options.outputs` say. Progress on stderr, where that is a terminal. Fails, before it begins, for what cannot be
/// watched or written.
Result<void> watch(const WatchOptions& options, EngineOptions engine, const WatchHooks& hooks);

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

/// Watches, prints the report that `make` makes at the end, and writes the files that were asked for. The exit code.
template <typename Report>
int watch_and_report(const WatchOptions& options, const EngineOptions& engine, Report (MonitorEngine::*make)(),
                     WatchHooks hooks = {}) {
  std::optional<Report> report;
  hooks.at_end = [&](MonitorEngine& watched) { report = (watched.*make)(); };
  const auto status = watch(options, engine, hooks);
  return status ? write_reports(options, *report) : fail(status.error().message);
}

/// "Stopped by Ctrl-C …", "Examples:" and these.
[[nodiscard]] std::string watching_footer(const std::string& about, const std::string& examples);

}  // namespace tidemark::cli
