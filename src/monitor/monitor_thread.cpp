#include "monitor/monitor_thread.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include "base/thread_without_signals.h"
#include "monitor/risk_notifier.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kPatienceForFirst = 2s;

}  // namespace

struct MonitorThread::Shared {
  explicit Shared(const EngineOptions& options) : engine(options) {}

  /// Updates the data that others read without waiting. Called with `mutex` held.
  void publish(const std::vector<MonitorEvent>& events) {
    const std::lock_guard lock(published);
    for (const MonitorEvent& event : events) {
      if (event.risk) untold.add(*event.risk);
      if (event.kind == MonitorEventKind::device_missing) missing = missing_device(engine.state());
    }
    has_ended = engine.end() != WatchEnd::not_yet;
    if (!wants_snapshots) return;
    snapshot = std::make_shared<const MonitorSnapshot>(MonitorSnapshot{engine.state(), engine.recorded()});
  }
  /// One tick. Called with `mutex` held.
  void tick() {
    publish(engine.tick());
    changed.notify_all();
  }

  const pid_t pid = ::getpid();
  std::thread thread;

  std::mutex mutex;  // guards the following members
  std::condition_variable changed;
  bool stopping = false;
  MonitorEngine engine;

  std::mutex published;  // guards the following; never held for long. Taken after `mutex`, or alone
  bool has_ended = false;
  bool wants_snapshots = false;
  std::shared_ptr<const MonitorSnapshot> snapshot;
  std::optional<Error> missing;
  KeptChanges untold;
};

MonitorThread::MonitorThread(EngineOptions options) : options_(std::move(options)) {}

MonitorThread::~MonitorThread() {
  stop();
}

void MonitorThread::add_listener(RiskListener listener) {
  const std::lock_guard lock(control_);
  listeners_.push_back(std::move(listener));
}

void MonitorThread::start() {
  const std::lock_guard lock(control_);
  leave_to_parent();
  if (shared_ && shared_->thread.joinable()) {
    {
      const std::lock_guard published(shared_->published);
      if (!shared_->has_ended) return;
    }
    shared_->thread.join();
  }
  shared_ = std::make_shared<Shared>(options_);
  for (const RiskListener& listener : listeners_) shared_->engine.add_listener(listener);
  shared_->thread = thread_without_signals([shared = shared_] { run(shared); });
}

void MonitorThread::stop() {
  const std::lock_guard lock(control_);
  leave_to_parent();
  if (!shared_) return;
  {
    const std::lock_guard engine(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  if (shared_->thread.joinable()) shared_->thread.join();
}

// In a forked child: the parent's thread does not exist, and its locks may be held forever, so the data they guard is
// kept.
void MonitorThread::leave_to_parent() {
  if (shared_ && shared_->pid != ::getpid()) static_cast<void>(new std::shared_ptr<Shared>(std::move(shared_)));
}

bool MonitorThread::watching() const {
  const auto shared = current();
  if (!shared) return false;
  const std::lock_guard lock((*shared)->published);
  return !(*shared)->has_ended;
}

void MonitorThread::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  MonitorEngine& engine = shared->engine;
  engine.start();
  while (!shared->stopping && engine.end() == WatchEnd::not_yet) {
    shared->tick();
    if (engine.end() == WatchEnd::not_yet) {
      shared->changed.wait_until(lock, engine.next_tick(), [&] { return shared->stopping; });
    }
  }
  if (engine.end() == WatchEnd::not_yet) {
    shared->publish(engine.tick());  // readings since the last tick
    if (engine.end() == WatchEnd::not_yet) engine.set_end(WatchEnd::stopped);
  }
  // Its destructor waits for a driver and for listeners, without holding a lock.
  const std::unique_ptr<MachineMonitor> ending = engine.finish();
  shared->publish(engine.events());
  shared->changed.notify_all();
  lock.unlock();
}

Result<std::shared_ptr<MonitorThread::Shared>> MonitorThread::current() const {
  const std::lock_guard lock(control_);
  if (!shared_) return Error{"nothing has been watched yet: start_monitoring() begins it"};
  if (shared_->pid != ::getpid()) return Error{"this process was forked from the one that watches: ask that one"};
  return shared_;
}

std::shared_ptr<const MonitorSnapshot> MonitorThread::snapshot() const {
  const auto shared = current();
  if (!shared) return nullptr;
  const std::lock_guard lock((*shared)->published);
  (*shared)->wants_snapshots = true;
  return (*shared)->snapshot;
}

Result<std::vector<RiskChange>> MonitorThread::take_changes() {
  const auto shared = current();
  if (!shared) return shared.error();
  const std::lock_guard lock((*shared)->published);
  if ((*shared)->missing) return *(*shared)->missing;
  std::vector<RiskChange> changes = (*shared)->untold.all();
  (*shared)->untold.clear();
  return changes;
}

template <typename Report>
Result<Report> MonitorThread::report(Report (MonitorEngine::*make)()) {
  const auto shared = current();
  if (!shared) return shared.error();
  MonitorEngine& engine = (*shared)->engine;
  std::unique_lock lock((*shared)->mutex);
  (*shared)->changed.wait_for(lock, kPatienceForFirst,
                              [&] { return engine.end() != WatchEnd::not_yet || engine.state().complete(); });
  if (engine.end() == WatchEnd::not_yet) (*shared)->tick();
  if (auto missing = missing_device(engine.state())) return *std::move(missing);
  Report made = (engine.*make)();
  (*shared)->publish(engine.events());
  return made;
}

Result<ProfileReport> MonitorThread::profile() {
  return report(&MonitorEngine::profile);
}

Result<OomReport> MonitorThread::oom() {
  return report(&MonitorEngine::oom);
}

Result<LeakReport> MonitorThread::leak() {
  return report(&MonitorEngine::leak);
}

Result<FragmentReport> MonitorThread::fragment() {
  return report(&MonitorEngine::fragment);
}

Result<void> MonitorThread::visit(const std::function<void(MonitorEngine&)>& use) {
  const auto shared = current();
  if (!shared) return shared.error();
  const std::lock_guard lock((*shared)->mutex);
  use((*shared)->engine);
  return {};
}

}  // namespace tidemark
