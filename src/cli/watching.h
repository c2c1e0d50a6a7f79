// Shared by commands that monitor a machine for a while: options, loop, and output of reports.
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
#include "cli/watched_program.h"
#include "monitor/engine.h"
#include "report/common/terminal.h"

namespace tidemark::cli {

struct WatchOptions {
  double duration_seconds = 60;
  double interval_seconds = 1;
  std::vector<std::string> devices;
  std::string pid;
  std::vector<std::string> program;  ///< started and recorded, and watched to its end; empty: none
  std::string output;                ///< path of the JSON; empty: none
  bool plot = false;                 ///< a PNG beside `output`
  std::string format = "text";
  OutputOptions outputs;
};

/// Selects the options of a command besides --duration, --devices, --pid, --interval, --output and --format.
struct WatchArguments {
  bool plot = false;
};
/// Adds --interval and --devices.
void add_watched(CommandLine& app, WatchOptions& options);
/// The same, and --pid.
void add_choice(CommandLine& app, WatchOptions& options);
void add_watching(CommandLine& app, WatchOptions& options, const WatchArguments& arguments);

/// Additions of a command to the loop.
struct WatchHooks {
  bool endless = false;                                                  ///< until a signal
  std::function<void(const std::vector<MonitorEvent>&)> on_events = {};  ///< after each turn of the engine
  std::function<void(MonitorEngine&)> at_end = {};                       ///< makes the report
  std::function<bool()> has_ended = {};                                  ///< asked each turn; replaces the duration
  std::function<void(int, bool)> on_signal = {};  ///< one that ends it, and whether the terminal sent it to the group
};

/// As much of recordings as is watched.
[[nodiscard]] SlidingWindow::Limits window_of(const WatchOptions& options);

/// Options of the engine; fails for what cannot be monitored.
Result<EngineOptions> engine_options(const WatchOptions& options);

/// Monitors until the time is over, the process has ended, or SIGINT, SIGTERM or SIGHUP comes, and passes observations
/// on as `options.outputs` requests. Progress goes to stderr if that is a terminal. Fails before it begins for what
/// cannot be monitored or written.
Result<void> watch(const WatchOptions& options, EngineOptions engine, const WatchHooks& hooks);

/// The path of the picture beside a report.
[[nodiscard]] std::string plot_path(const std::string& output);
/// Whether the files can be written, before hours of watching are lost. `output` empty: none.
Result<void> check_outputs(const std::string& output, bool plot);

/// Formats of one report.
struct WrittenReport {
  std::function<std::string(const Terminal&)> text;
  std::function<std::string()> json;
};
/// Prints it, and writes the requested files. Returns the exit code.
int write_reports(const WatchOptions& options, const MachineState& state, const WrittenReport& report);

/// The same for the types that have to_text() and to_json().
template <typename Report>
int write_reports(const WatchOptions& options, const Report& report) {
  return write_reports(
      options, report.state,
      {[&](const Terminal& terminal) { return to_text(report, terminal); }, [&] { return to_json(report); }});
}

/// Monitors, prints the report from `make` at the end, and writes the requested files. Returns the exit code: that of
/// WatchOptions::program, if it failed.
template <typename Report>
int watch_and_report(const WatchOptions& options, EngineOptions engine, Report (MonitorEngine::*make)(),
                     WatchHooks hooks = {}) {
  std::optional<Report> report;
  hooks.at_end = [&](MonitorEngine& watched) { report = (watched.*make)(); };
  WatchedProgram program;
  if (!options.program.empty()) {
    if (auto started = program.start(options.program); !started) return fail(started.error().message);
    engine.machine.choice.pid = program.pid();
    hooks.has_ended = [&] { return program.ended(); };
    hooks.on_signal = [&](int signal, bool from_terminal) { program.pass_on(signal, from_terminal); };
  }
  const auto status = watch(options, engine, hooks);
  const int exit_code = options.program.empty() ? kOk : program.wait();
  if (WatchedProgram::has_not_started(exit_code)) return exit_code;  // tidemark run has said why
  const int written = status ? write_reports(options, *report) : fail(status.error().message);
  return exit_code != kOk ? exit_code : written;
}

/// "Stopped by Ctrl-C …", "Examples:" and these.
[[nodiscard]] std::string watching_footer(const std::string& about, const std::string& examples);

}  // namespace tidemark::cli
