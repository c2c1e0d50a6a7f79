#include "monitor/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr double kMinIntervalSeconds = 0.01;
constexpr double kMaxIntervalSeconds = 3600;
constexpr std::chrono::nanoseconds kMaxBetweenTicks = 500ms;
constexpr std::chrono::nanoseconds kMinBetweenTicks = 20ms;     // also while waiting for the first readings
constexpr std::chrono::nanoseconds kBetweenCatchingUp = 5ms;    // others may need the engine meanwhile
constexpr std::chrono::nanoseconds kPatienceForRecorders = 2s;  // for recorders that have not sent their list yet

template <typename Report>
Report report_of(WatchRun run) {
  Report report;
  static_cast<WatchRun&>(report) = std::move(run);
  return report;
}

bool is_same(const LiveRecording& left, const LiveRecording& right) {
  return left.pid == right.pid && left.started_wall_ns == right.started_wall_ns;
}

}  // namespace

Result<std::chrono::nanoseconds> sampling_interval(double seconds, std::string_view name) {
  if (!(seconds >= kMinIntervalSeconds && seconds <= kMaxIntervalSeconds)) {
    return Error{fmt::format("{} {}: from {} to {} seconds", name, seconds, kMinIntervalSeconds, kMaxIntervalSeconds)};
  }
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

Result<void> check(const EngineOptions& options, const OptionNames& names) {
  const auto interval =
      sampling_interval(std::chrono::duration<double>(options.machine.interval).count(), names.interval);
  if (!interval) return interval.error();
  const double threshold = options.machine.forecast.threshold_percent;
  if (!(threshold > 0 && threshold <= 100)) {
    return Error{fmt::format("{} {}: percent, from 0 to 100", names.threshold, threshold)};
  }
  if (!(options.leak_bytes_per_minute >= 0)) {
    return Error{fmt::format("{} {}: MB per minute, 0 or more", names.leak_threshold,
                             options.leak_bytes_per_minute / static_cast<double>(kMiB))};
  }
  return {};
}

std::optional<Error> missing_device(const MachineState& state, std::string_view option) {
  if (state.missing_keys.empty()) return std::nullopt;
  const std::string& missing = state.missing_keys.front();
  return Error{fmt::format("{} (there is {}); `tidemark devices` lists them",
                           option.empty() ? fmt::format("there is no device {} here", missing)
                                          : fmt::format("{} {}: there is no such device here", option, missing),
                           fmt::join(state.all_keys, ", "))};
}

MonitorEngine::MonitorEngine(const EngineOptions& options)
    : options_(options),
      machine_(std::make_unique<MachineMonitor>(options.machine)),
      recordings_(options.machine.interval, options.window, options.max_recordings),
      began_(Clock::now()) {
  if (options.objects) recordings_.ask_for_objects();
  // The same amount is read at each tick, however busy the machine is.
  if (options.machine.scripted) recordings_.set_limits({.time = 1h});
}

void MonitorEngine::start() {
  began_ = Clock::now();
  if (machine_) machine_->start();
}

void MonitorEngine::add_listener(RiskListener listener) {
  if (machine_) machine_->add_listener(std::move(listener));
}

const std::vector<MonitorEvent>& MonitorEngine::tick() {
  events_.clear();
  ticked_ = Clock::now();
  if (!machine_) return events_;
  (void)machine_->update();
  add_changes();
  sample_machine();
  if (options_.follow) follow();
  return events_;
}

void MonitorEngine::follow() {
  const bool only_listed = options_.machine.choice.pid.has_value();
  recordings_.update(machine_->state(), only_listed);
  if (options_.machine.scripted) recordings_.assess();
  machine_->set_steps(recordings_.steps());
  machine_->add_peaks(recordings_.take_peaks());
  if (options_.owners) recordings_.update_owners();
  if (options_.endless) recordings_.forget_ended();
  read_recordings();
}

MonitorEngine::Clock::time_point MonitorEngine::next_tick() const {
  if (options_.machine.scripted) return ticked_;
  if (options_.follow && !recordings_.caught_up()) return ticked_ + kBetweenCatchingUp;
  const bool awaits_recorders =
      options_.follow && !recordings_.heard() && Clock::now() < began_ + kPatienceForRecorders;
  if (awaits_recorders || state().is_starting()) return ticked_ + kMinBetweenTicks;
  return ticked_ + std::clamp<std::chrono::nanoseconds>(options_.machine.interval, kMinBetweenTicks, kMaxBetweenTicks);
}

const std::vector<MonitorEvent>& MonitorEngine::assess() {
  events_.clear();
  if (!machine_) return events_;
  machine_->assess();
  add_changes();
  return events_;
}

void MonitorEngine::add_event(MonitorEventKind kind, std::string text) {
  MonitorEvent& event = events_.emplace_back();
  event.kind = kind;
  event.time_ns = state().now_ns;
  event.text = std::move(text);
}

void MonitorEngine::add_changes() {
  for (const RiskChange& change : machine_->changes()) {
    kept_.add(change);
    add_event(MonitorEventKind::risk_changed);
    events_.back().time_ns = change.time_ns;
    events_.back().risk = change;
  }
}

void MonitorEngine::sample_machine() {
  const MachineState& now = machine_->state();
  if (!has_missed_device_ && !now.missing_keys.empty()) {
    has_missed_device_ = true;
    add_event(MonitorEventKind::device_missing, now.missing_keys.front());
  }
  if (!has_read_all_ && now.complete()) {
    has_read_all_ = true;
    add_event(MonitorEventKind::first_readings);
  }
  if (now.watched_pid != WatchedPid::ended || end_ != WatchEnd::not_yet) return;
  end_ = WatchEnd::process_ended;
  add_event(MonitorEventKind::process_ended);
}

void MonitorEngine::read_recordings() {
  for (SeenRecording& seen : seen_) seen.present = false;
  const auto add = [this](MonitorEventKind kind, const RecordedProcess& process) {
    add_event(kind, process.problem);
    events_.back().recording = process.recording;
  };
  for (std::size_t n = 0; n < recordings_.count(); ++n) {
    const RecordedProcess& process = recordings_.process(n);
    auto seen = std::find_if(seen_.begin(), seen_.end(),
                             [&](const SeenRecording& known) { return is_same(known.recording, process.recording); });
    if (seen == seen_.end()) {
      seen = seen_.insert(seen_.end(), SeenRecording{process.recording});
      add(MonitorEventKind::recording_found, process);
    }
    seen->present = true;
    if (std::exchange(seen->goes_on, process.goes_on()) && !seen->goes_on) {
      add(process.problem.empty() ? MonitorEventKind::recording_ended : MonitorEventKind::recording_failed, process);
    }
  }
  std::erase_if(seen_, [](const SeenRecording& seen) { return !seen.present; });
  for (RecordedIncident& incident : recordings_.take_incidents()) {
    add_event(MonitorEventKind::incident);
    events_.back().incident = std::move(incident);
  }
}

std::unique_ptr<MachineMonitor> MonitorEngine::finish() {
  if (!machine_) return nullptr;
  (void)assess();
  last_ = machine_->state();
  dropped_ = machine_->dropped_changes();
  return std::move(machine_);
}

WatchRun MonitorEngine::run() {
  (void)assess();
  if (options_.follow) recordings_.assess();
  WatchRun run;
  run.state = state();
  run.interval_seconds = std::chrono::duration<double>(options_.machine.interval).count();
  run.pid = options_.machine.choice.pid;
  run.end = end_;
  run.recorded = recordings_.processes();
  return run;
}

ProfileReport MonitorEngine::profile() {
  return report_of<ProfileReport>(run());
}

OomReport MonitorEngine::oom() {
  auto report = report_of<OomReport>(run());
  report.threshold_percent = options_.machine.forecast.threshold_percent;
  report.changes = kept_.all();
  report.earlier_changes = kept_.earlier();
  return report;
}

LeakReport MonitorEngine::leak() {
  auto report = report_of<LeakReport>(run());
  report.threshold_bytes_per_minute = options_.leak_bytes_per_minute;
  report.growths = memory_growth(report.state, report.recorded, options_.leak_bytes_per_minute);
  report.tracking = options_.tracking;
  if (options_.tracking) report.by_stack = recorded_leaks(recordings_);
  return report;
}

FragmentReport MonitorEngine::fragment() {
  auto report = report_of<FragmentReport>(run());
  report.of_recorded = recorded_fragmentation(recordings_);
  return report;
}

}  // namespace tidemark
