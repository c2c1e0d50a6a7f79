#include "cli/watching.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/standard_streams.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/ending_signals.h"
#include "cli/progress_line.h"
#include "cli/reading.h"
#include "monitor/job_finder.h"
#include "query/words/monitors.h"
#include "report/chart/chart.h"
#include "report/common/terminal.h"

namespace tidemark::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMaxDuration = 10.0 * 365 * 86400;

OptionNames option_names() {
  return {.interval = "--interval", .threshold = "--threshold", .leak_threshold = "--threshold"};
}

std::optional<std::int64_t> pid_of(const std::string& text) {
  const auto pid = parse_number<std::int64_t>(text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

/// Whether the file can be written, before hours of watching are lost.
Result<void> check_writable(const std::string& path) {
  const auto file = OutputFile::create(path);
  return file ? Result<void>() : file.error();
}

}  // namespace

void add_watched(CommandLine& app, WatchOptions& options) {
  app.add_option("--interval", options.interval_seconds,
                 "Time between two samples, in seconds or as 500ms; lists of processes are read once a second at most")
      ->seconds();
  app.add_option("--devices", options.devices,
                 "Only these: numbers as in `tidemark devices` (0), 0:1 for MIG instance 1 of GPU 0, UUIDs, or cpu "
                 "for the host's memory")
      ->all_that_follow()
      ->type_name("DEVICE...")
      ->show_default("all GPUs; cpu where there is none");
}

std::string plot_path(const std::string& output) {
  return std::filesystem::path(output).replace_extension(".png").string();
}

Result<void> check_outputs(const std::string& output, bool plot) {
  if (output.empty() && plot) {
    return Error{"--plot: the picture is written beside the report; name that with --output FILE.json"};
  }
  if (output.empty()) return {};
  if (auto status = check_writable(output); !status) return status;
  return plot ? check_writable(plot_path(output)) : Result<void>();
}

Result<EngineOptions> engine_options(const WatchOptions& options) {
  EngineOptions engine;
  const auto interval = sampling_interval(options.interval_seconds, option_names().interval);
  if (!interval) return interval.error();
  if (!(options.duration_seconds > 0 && options.duration_seconds <= kMaxDuration)) {
    return Error{fmt::format("--duration {}: seconds, more than 0", options.duration_seconds)};
  }
  engine.machine.interval = *interval;
  engine.machine.choice.devices = options.devices;
  if (options.pid.empty()) return engine;
  engine.machine.choice.pid = pid_of(options.pid);
  if (!engine.machine.choice.pid) return Error{fmt::format("--pid {}: not a process ID", options.pid)};
  if (!start_of(*engine.machine.choice.pid)) {
    return Error{fmt::format("--pid {}: there is no such process here", options.pid)};
  }
  return engine;
}

void add_choice(CommandLine& app, WatchOptions& options) {
  add_watched(app, options);
  app.add_option("--pid", options.pid, "This process and its children; ends when it ends")->type_name("PID");
}

void add_watching(CommandLine& app, WatchOptions& options, const WatchArguments& arguments) {
  app.add_option("--duration", options.duration_seconds, "How long to watch: seconds, or 10min, 2h")->seconds();
  add_choice(app, options);
  app.add_option("-o,--output", options.output, "Write the report as JSON to this file")->type_name("FILE");
  if (arguments.plot) {
    app.add_flag("--plot", options.plot,
                 "Also draw the use of each device over time, and a heat map of all, into a PNG file beside --output");
  }
  add_format(app, options.format, "text|json");
  add_outputs(app, options.outputs);
}

SlidingWindow::Limits window_of(const WatchOptions& options) {
  SlidingWindow::Limits limits;
  limits.length = std::chrono::nanoseconds(std::llround(std::clamp(options.duration_seconds, 1.0, kMaxDuration) * 1e9));
  return limits;
}

Result<void> watch(const WatchOptions& options, EngineOptions engine_options, const WatchHooks& hooks) {
  if (auto status = check(engine_options, option_names()); !status) return status.error();
  if (auto status = check_outputs(options.output, options.plot); !status) return status.error();
  const EndingSignals signals;
  const auto outputs = MonitorOutputs::start(options.outputs);
  if (!outputs) return outputs.error();
  if (const std::string url = (*outputs)->url(); !url.empty()) say("metrics at " + url);
  engine_options.owners = (*outputs)->wants_recordings();
  engine_options.endless = hooks.endless;
  MonitorEngine engine(engine_options);
  engine.start();
  const auto recorded = [&engine] { return engine.recorded(); };
  ProgressLine progress;
  const bool has_duration = !hooks.endless && !hooks.has_ended;
  const std::optional<double> duration = has_duration ? std::optional(options.duration_seconds) : std::nullopt;
  const Clock::time_point end =
      duration ? Clock::now() + std::chrono::nanoseconds(std::llround(std::min(*duration, kMaxDuration) * 1e9))
               : Clock::time_point::max();
  while (engine.end() == WatchEnd::not_yet) {
    progress.show([&] { return watch_progress(engine.state(), duration); });
    const bool begins = engine.state().is_starting();  // a report is of one answer at least
    const auto signal = signals.wait_until(begins ? engine.next_tick() : std::min(end, engine.next_tick()));
    const std::vector<MonitorEvent>& events = engine.tick();
    if (auto missing = missing_device(engine.state(), "--devices")) return *std::move(missing);
    if (hooks.on_events) hooks.on_events(events);
    (*outputs)->update(engine.state(), events, recorded);
    if (signal && hooks.on_signal) hooks.on_signal(signal->number, signal->from_terminal);
    if (signal) {
      engine.set_end(WatchEnd::interrupted);
    } else if (hooks.has_ended && hooks.has_ended()) {
      engine.set_end(WatchEnd::process_ended);
    } else if (engine.end() == WatchEnd::not_yet && Clock::now() >= end && !engine.state().is_starting()) {
      engine.set_end(WatchEnd::duration);
    }
  }
  const std::vector<MonitorEvent>& events = engine.assess();
  if (hooks.on_events) hooks.on_events(events);
  (*outputs)->finish(engine.state(), events, recorded);
  if (hooks.at_end) hooks.at_end(engine);
  return {};
}

int write_reports(const WatchOptions& options, const MachineState& state, const WrittenReport& report) {
  // Files first: the reader of stdout may have exited.
  int code = kOk;
  if (!options.output.empty()) {
    code = write_output(options.output, report.json());
  }
  if (options.plot) {
    const auto written = write_picture(plot_path(options.output), draw_usage(state, ChartFormat::png));
    if (!written) code = fail(written.error().message);
  }
  const int printed = print(options.format == "json" ? report.json() : report.text(detect_terminal(STDOUT_FILENO)));
  return code == kOk ? printed : code;
}

std::string watching_footer(const std::string& about, const std::string& examples) {
  return about +
         "\n\nCtrl-C and SIGTERM end it before its time: the report is made of what was seen, and says so. Exit code 0 "
         "then too; 2: an error.\n\nExamples:\n" +
         examples;
}

}  // namespace tidemark::cli
