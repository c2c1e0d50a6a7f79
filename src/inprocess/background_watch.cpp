#include "inprocess/background_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <utility>

#include "base/thread_without_signals.h"
#include "monitor/kept_changes.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kPatienceForFirst = 2s;
constexpr std::chrono::nanoseconds kMaxBetweenLooks = 500ms;
constexpr std::chrono::nanoseconds kMinBetweenLooks = 20ms;

// Whether each device has been read, or will not be.
bool all_read(const MachineState& state) {
  return state.devices_known && state.host.memory.total_bytes &&
         std::all_of(state.devices.begin(), state.devices.end(), [](const WatchedDevice& device) {
           return device.sampled_at_ns.has_value() || !device.lost.empty();
         });
}

template <typename Report>
Report report_of(WatchRun run) {
  Report report;
  static_cast<WatchRun&>(report) = std::move(run);
  return report;
}

Error no_such_device(const MachineState& state) {
  return {fmt::format("there is no device {} here (there is {}); `tidemark devices` lists them",
                      state.missing_keys.front(), fmt::join(state.all_keys, ", "))};
}

}  // namespace

Result<void> check_watch(const MonitorOptions& options) {
  const double seconds = std::chrono::duration<double>(options.interval).count();
  if (!(seconds >= 0.01 && seconds <= 3600)) {
    return Error{fmt::format("an interval of {} seconds: it is from 0.01 to 3600", seconds)};
  }
  const double threshold = options.forecast.threshold_percent;
  if (!(threshold > 0 && threshold <= 100)) {
    return Error{fmt::format("a threshold of {}: it is in percent, from 0 to 100", threshold)};
  }
  return {};
}

struct BackgroundWatch::Shared {
  explicit Shared(const BackgroundWatchOptions& chosen)
      : options(chosen), recordings(chosen.monitor.interval, chosen.window) {}

  /// The changes that the monitor has, from one on.
  void collect(std::size_t from) {
    const std::vector<RiskChange>& all = monitor->changes();
    for (std::size_t n = from; n < all.size(); ++n) {
      kept.add(all[n]);
      untold.add(all[n]);
    }
  }
  void assess() {
    const std::size_t known = monitor->changes().size();
    monitor->assess();
    collect(known);
  }
  [[nodiscard]] const MachineState& state() const { return monitor ? monitor->state() : last; }

  const BackgroundWatchOptions options;
  const pid_t pid = ::getpid();
  std::thread thread;
  std::vector<RiskListener> listeners;

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool stopping = false;
  WatchEnd end = WatchEnd::not_yet;
  std::unique_ptr<MachineMonitor> monitor;  // null before the thread runs and at the end
  MachineState last;                        // at the end
  RecordingsWatch recordings;
  KeptChanges kept;
  KeptChanges untold;
};

BackgroundWatch::BackgroundWatch(BackgroundWatchOptions options) : options_(std::move(options)) {}

BackgroundWatch::~BackgroundWatch() {
  stop();
}

void BackgroundWatch::add_listener(RiskListener listener) {
  const std::lock_guard lock(control_);
  listeners_.push_back(std::move(listener));
}

void BackgroundWatch::start() {
  const std::lock_guard lock(control_);
  leave_to_parent();
  if (shared_ && shared_->thread.joinable()) {
    const std::lock_guard seen(shared_->mutex);
    if (shared_->end == WatchEnd::not_yet) return;
  }
  if (shared_ && shared_->thread.joinable()) shared_->thread.join();
  shared_ = std::make_shared<Shared>(options_);
  shared_->listeners = listeners_;
  shared_->thread = thread_without_signals([shared = shared_] { run(shared); });
}

void BackgroundWatch::stop() {
  const std::lock_guard lock(control_);
  leave_to_parent();
  if (!shared_) return;
  {
    const std::lock_guard seen(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  if (shared_->thread.joinable()) shared_->thread.join();
}

// In a forked child: the parent's thread is not here, and its locks may be held for good, so what they protect stays.
void BackgroundWatch::leave_to_parent() {
  if (shared_ && shared_->pid != ::getpid()) static_cast<void>(new std::shared_ptr<Shared>(std::move(shared_)));
}

bool BackgroundWatch::watching() const {
  const auto shared = current();
  if (!shared) return false;
  const std::lock_guard lock((*shared)->mutex);
  return (*shared)->end == WatchEnd::not_yet;
}

void BackgroundWatch::run(const std::shared_ptr<Shared>& shared) {
  const auto& options = shared->options;
  const auto between =
      std::clamp<std::chrono::nanoseconds>(options.monitor.interval, kMinBetweenLooks, kMaxBetweenLooks);
  std::unique_lock lock(shared->mutex);
  shared->monitor = std::make_unique<MachineMonitor>(options.monitor);
  for (const RiskListener& listener : shared->listeners) shared->monitor->add_listener(listener);
  shared->monitor->start();
  while (!shared->stopping && shared->end == WatchEnd::not_yet) {
    // Until all was read for the first time somebody may be waiting for it.
    const bool early = !all_read(shared->monitor->state());
    shared->changed.wait_for(lock, early ? kMinBetweenLooks : between, [&] { return shared->stopping; });
    (void)shared->monitor->update();
    shared->collect(0);
    const MachineState& state = shared->monitor->state();
    if (options.follow) {
      shared->recordings.update(state, options.monitor.choice.pid.has_value());
      shared->monitor->add_peaks(shared->recordings.take_peaks());
    }
    if (state.watched_pid == WatchedPid::ended) shared->end = WatchEnd::process_ended;
    if (early) shared->changed.notify_all();
  }
  if (shared->end == WatchEnd::not_yet) shared->end = WatchEnd::stopped;
  shared->assess();
  shared->last = shared->monitor->state();
  // Its end waits for a driver and for listeners, without anybody's waiting for it.
  const std::unique_ptr<MachineMonitor> ending = std::move(shared->monitor);
  shared->changed.notify_all();
  lock.unlock();
}

Result<std::shared_ptr<BackgroundWatch::Shared>> BackgroundWatch::current() const {
  const std::lock_guard lock(control_);
  if (!shared_) return Error{"nothing has been watched yet: start_monitoring() begins it"};
  if (shared_->pid != ::getpid()) return Error{"this process was forked from the one that watches: ask that one"};
  return shared_;
}

Result<WatchRun> BackgroundWatch::seen(Shared& shared, std::unique_lock<std::mutex>& lock) {
  shared.changed.wait_for(lock, kPatienceForFirst, [&] {
    return shared.end != WatchEnd::not_yet || (shared.monitor && all_read(shared.state()));
  });
  if (shared.monitor) {
    (void)shared.monitor->update();
    shared.collect(0);
    shared.assess();
  }
  const MachineState& state = shared.state();
  if (!state.missing_keys.empty()) return no_such_device(state);
  WatchRun run;
  run.state = state;
  run.interval_seconds = std::chrono::duration<double>(shared.options.monitor.interval).count();
  run.pid = shared.options.monitor.choice.pid;
  run.end = shared.end;
  run.recorded = shared.recordings.processes();
  return run;
}

Result<ProfileReport> BackgroundWatch::profile() {
  const auto shared = current();
  if (!shared) return shared.error();
  std::unique_lock lock((*shared)->mutex);
  auto run = seen(**shared, lock);
  return run ? Result(report_of<ProfileReport>(std::move(*run))) : run.error();
}

Result<OomReport> BackgroundWatch::oom() {
  const auto shared = current();
  if (!shared) return shared.error();
  std::unique_lock lock((*shared)->mutex);
  auto run = seen(**shared, lock);
  if (!run) return run.error();
  auto report = report_of<OomReport>(std::move(*run));
  report.threshold_percent = options_.monitor.forecast.threshold_percent;
  report.changes = (*shared)->kept.all();
  report.earlier_changes = (*shared)->kept.earlier();
  return report;
}

Result<LeakReport> BackgroundWatch::leak(double threshold_bytes_per_minute, bool tracking) {
  const auto shared = current();
  if (!shared) return shared.error();
  std::unique_lock lock((*shared)->mutex);
  auto run = seen(**shared, lock);
  if (!run) return run.error();
  auto report = report_of<LeakReport>(std::move(*run));
  report.threshold_bytes_per_minute = threshold_bytes_per_minute;
  report.growths = memory_growth(report.state, report.recorded, threshold_bytes_per_minute);
  report.tracking = tracking;
  if (tracking && options_.window) report.by_stack = recorded_leaks((*shared)->recordings);
  return report;
}

Result<FragmentReport> BackgroundWatch::fragment() {
  const auto shared = current();
  if (!shared) return shared.error();
  std::unique_lock lock((*shared)->mutex);
  auto run = seen(**shared, lock);
  if (!run) return run.error();
  auto report = report_of<FragmentReport>(std::move(*run));
  if (options_.window) report.of_recorded = recorded_fragmentation((*shared)->recordings);
  return report;
}

Result<std::vector<RiskChange>> BackgroundWatch::take_changes() {
  const auto shared = current();
  if (!shared) return shared.error();
  const std::lock_guard lock((*shared)->mutex);
  if (const MachineState& state = (*shared)->state(); !state.missing_keys.empty()) return no_such_device(state);
  std::vector<RiskChange> changes = (*shared)->untold.all();
  (*shared)->untold.clear();
  return changes;
}

}  // namespace tidemark
